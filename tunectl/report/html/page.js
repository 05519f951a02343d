// What the page can do besides: without it every figure stands. Nothing is fetched, stored or sent.
const all = (what, within = document) => [...within.querySelectorAll(what)]
const make = (tag, to, fields = {}) => Object.assign(to.appendChild(document.createElement(tag)), fields)
const three = value => String(Number(value.toPrecision(3)))
const length = ns => {
  for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) if (ns >= size * 0.9995) return `${three(ns / size)} ${unit}`
  return `${three(ns)} ns`
}

// ---- a tip at the pointer
const tip = make('div', document.body, {className: 'tip', hidden: true})
const tell = (event, text) => {
  tip.hidden = !text
  tip.textContent = text
  tip.style.left = `${Math.min(event.pageX + 14, document.body.offsetWidth - tip.offsetWidth - 8)}px`
  tip.style.top = `${event.pageY + 16}px`
}
const at = (event, svg) => {
  const box = svg.getBoundingClientRect()
  return [(event.clientX - box.left) / box.width, (event.clientY - box.top) / box.height]
}

// ---- curves: what each reads at the pointer
const written = {'times a second': y => `${three(y)}/s`, 'share of arrivals': y => `${three(y * 100)} %`, 'share of messages': y => `${three(y * 100)} %`}
const heightAt = (path, x) => {
  let [low, high] = [0, path.getTotalLength()]
  if (x < path.getPointAtLength(0).x || x > path.getPointAtLength(high).x) return null
  while (high - low > 0.2) path.getPointAtLength((low + high) / 2).x < x ? low = (low + high) / 2 : high = (low + high) / 2
  return path.getPointAtLength(low).y
}
for (const svg of all('svg.readable')) {
  const [xLow, xHigh, , , yLow, yHigh] = svg.dataset.scale.split(' ').map(Number)
  const [left, right, bottom, top] = svg.dataset.box.split(' ').map(Number)
  svg.addEventListener('pointerleave', event => tell(event, ''))
  svg.addEventListener('pointermove', event => {
    const x = at(event, svg)[0] * svg.viewBox.baseVal.width
    if (x < left || x > right) return tell(event, '')
    const lines = all('path.curve', svg).map(path => [path.dataset.name, heightAt(path, x)]).filter(([, y]) => y !== null)
      .map(([name, y]) => `${name}: ${written[svg.dataset.kind](yLow * (yHigh / yLow) ** ((bottom - y) / (bottom - top)))}`)
    tell(event, [`longer than ${length(xLow * (xHigh / xLow) ** ((x - left) / (right - left)))}`, ...lines].join('\n'))
  })
}

// ---- the timeline: read a gap, drag to zoom all CPUs
for (const figure of all('figure.gaps')) {
  const [low, high] = figure.dataset.scale.split(' ').map(Number)
  const run = Number(figure.dataset.run), inner = all('svg.points', figure), ends = all('.ends span', figure)
  const names = Object.fromEntries(all('.legend path', figure).map(path => [path.classList[0], path.closest('span').textContent]))
  const {width, height} = inner[0].viewBox.baseVal
  let [from, to] = [0, width]
  const zoom = (begin, end) => {
    [from, to] = [Math.max(begin, 0), Math.min(end, width)]
    for (const svg of inner) svg.setAttribute('viewBox', `${from} 0 ${to - from} ${height}`)
    ;[from, to].forEach((x, i) => ends[i].textContent = x ? length(x / width * run) : '0 s')
    back.hidden = to - from === width
  }
  const caption = figure.querySelector('figcaption')
  make('span', caption, {textContent: ' Drag over a part to zoom. '})
  const back = make('button', caption, {textContent: 'whole run', hidden: true, onclick: () => zoom(0, width)})
  for (const svg of inner.map(points => points.parentNode)) {
    const points = all('path', svg).flatMap(path => [...path.getAttribute('d').matchAll(/M(\d+) (\d+)/g)].map(([, x, y]) => [+x, +y, path.classList[0]]))
    const where = event => from + Math.min(Math.max(at(event, svg)[0], 0), 1) * (to - from)
    const band = svg.appendChild(document.createElementNS(svg.namespaceURI, 'rect'))
    let start = null
    band.setAttribute('class', 'band')
    band.setAttribute('height', '100%')
    const mark = (a, b) => (band.setAttribute('x', `${(a - from) / (to - from) * 100}%`), band.setAttribute('width', `${(b - a) / (to - from) * 100}%`))
    svg.addEventListener('pointerdown', event => { start = where(event); svg.setPointerCapture(event.pointerId); event.preventDefault() })
    svg.addEventListener('pointerup', event => {
      const ends = [start, where(event)].sort((a, b) => a - b)
      if (start !== null && ends[1] - ends[0] > (to - from) / 100) zoom(...ends)
      start = null
      mark(from, from)
    })
    svg.addEventListener('dblclick', () => zoom(0, width))
    svg.addEventListener('pointerleave', event => tell(event, ''))
    svg.addEventListener('pointermove', event => {
      const [x, y] = [where(event), at(event, svg)[1] * height]
      if (start !== null) return mark(Math.min(start, x), Math.max(start, x))
      const box = svg.getBoundingClientRect()
      const far = ([px, py]) => Math.hypot((px - x) / (to - from) * box.width, (py - y) / height * box.height)
      const near = points.reduce((best, point) => far(point) < far(best) ? point : best, [Infinity, 0, ''])
      tell(event, far(near) > 12 ? '' : `${length(low * (high / low) ** (1 - near[1] / height))} after ${length(near[0] / width * run)}\n${names[near[2]] ?? ''}`)
    })
  }
}

// ---- tables: sort by a column, search, and show what needs attention
const amount = text => {
  const found = /^[×÷]?([\d,.]+(?:e[+-]?\d+)?)\s*(ns|µs|ms|s|%|ppm|\/s)?/.exec(text.trim())
  return found ? Number(found[1].replaceAll(',', '')) * ({µs: 1e3, ms: 1e6, s: 1e9}[found[2]] ?? 1) * (found[2] === '%' ? 1e4 : 1) : null
}
for (const table of all('table:not(.forest, .matrix)')) {
  const body = table.tBodies[0], rows = [...body.rows]
  if (rows.length < 3 || table.closest('.budget')) continue
  const read = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent
  all('thead th', table).forEach((head, column) => {
    if (!head.textContent) return
    const button = make('button', head, {className: 'sort', textContent: head.textContent})
    head.firstChild.remove()
    button.addEventListener('click', () => {
      const up = head.ariaSort !== 'ascending'
      all('thead th', table).forEach(other => other.ariaSort = null)
      head.ariaSort = up ? 'ascending' : 'descending'
      const keyed = rows.map(row => [amount(read(row, column)), read(row, column), row])
      keyed.sort(([a, s], [b, t]) => (a === null || b === null ? (a === null) - (b === null) || s.localeCompare(t, 'en', {numeric: true}) : a - b))
      body.append(...(up ? keyed : keyed.reverse()).map(([, , row]) => row))
    })
  })
  if (!table.classList.contains('find')) continue
  const bar = document.createElement('div')
  bar.className = 'bar-of-table'
  table.closest('.scroll').before(bar)
  const search = make('input', bar, {type: 'search', placeholder: 'search'})
  search.ariaLabel = `search ${table.closest('.scroll').ariaLabel}`
  const filter = make('select', bar), count = make('span', bar, {className: 'quiet'})
  filter.ariaLabel = 'show'
  const words = new Map([['everything', () => true]])
  if (rows.some(row => row.className === 'needs')) words.set('what needs attention', row => row.className === 'needs')
  for (const word of new Set(all('.chip', body).map(chip => chip.textContent))) words.set(word, row => row.querySelector('.chip')?.textContent === word)
  for (const word of words.keys()) make('option', filter, {textContent: word})
  const apply = () => {
    const shown = rows.filter(row => (row.hidden = !(words.get(filter.value)(row) && row.textContent.toLowerCase().includes(search.value.toLowerCase())), !row.hidden))
    count.textContent = `${shown.length} of ${rows.length}`
  }
  if (words.has('what needs attention')) filter.value = 'what needs attention'
  search.addEventListener('input', apply)
  filter.addEventListener('input', apply)
  addEventListener('beforeprint', () => rows.forEach(row => row.hidden = false))
  addEventListener('afterprint', apply)
  apply()
}

addEventListener('beforeprint', () => all('details').forEach(part => part.open = true))

// ---- commands: copied at a click
for (const code of all('code')) {
  const button = document.createElement('button')
  button.className = 'copy'
  button.textContent = 'copy'
  button.addEventListener('click', async () => {
    const range = document.createRange()
    range.selectNodeContents(code)
    getSelection().removeAllRanges()
    getSelection().addRange(range)
    await navigator.clipboard?.writeText(code.textContent).catch(() => null) ?? document.execCommand('copy')
    button.textContent = 'copied'
    setTimeout(() => button.textContent = 'copy', 1500)
  })
  code.after(button)
}
