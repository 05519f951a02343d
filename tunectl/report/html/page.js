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
const share = y => `${y < 1 && y > 0.9995 ? String(y * 100).slice(0, 7) : three(y * 100)} %`, written = {'times a second': y => `${three(y)}/s`, 'share of arrivals': share, 'share of messages': share}
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
const byName = new Intl.Collator('en', {numeric: true})
const amount = text => {
  const found = /^[×÷]?([\d,.]+(?:e[+-]?\d+)?)\s*(ns|µs|ms|s|%|ppm|\/s)?/.exec(text.trim())
  return found ? Number(found[1].replaceAll(',', '')) * ({µs: 1e3, ms: 1e6, s: 1e9}[found[2]] ?? 1) * (found[2] === '%' ? 1e4 : 1) : null
}
// A row is {texts, keys, needs, word, row}. Of a large fleet the page has the first only: others are drawn when shown.
const inPage = row => ({row, texts: [...row.cells].map(cell => cell.textContent), keys: [...row.cells].map(cell => cell.dataset.sort ?? cell.textContent),
  needs: row.className === 'needs', word: row.querySelector('.chip')?.textContent})
const ofData = ({columns, looks, odd, pages}, first) => {
  const strange = new Set(odd.map(place => place.join()))
  return columns[0][1].map((_, at) => {
    const texts = columns.map(([known, places]) => known[places[at]]), look = looks[texts[1]]
    const keys = texts.with(1, String(columns[1][1][at]))
    return {texts, keys, needs: look !== 'good', word: texts[1], get row() {
      const row = first.cloneNode(true), [name, verdict, ...rest] = row.cells
      Object.assign(row, {className: look === 'good' ? '' : 'needs'}).cells[0].replaceChildren()
      ;(pages[at] ? make('a', name, {href: pages[at]}) : name).textContent = texts[0]
      Object.assign(verdict.querySelector('.chip'), {textContent: texts[1], className: `chip ${look}`})
      rest.forEach((cell, i) => { cell.textContent = texts[i + 2]; cell.classList.toggle('higher', strange.has(`${at},${i + 2}`)) })
      Object.defineProperty(this, 'row', {value: row})
      return row
    }}
  })
}
const data = document.querySelector('script.hosts'), fleet = data && JSON.parse(data.textContent), PAGE = 200
for (const table of all('table:not(.forest, .matrix)')) {
  const body = table.tBodies[0], isPaged = data?.parentNode.contains(table)
  const items = isPaged ? ofData(fleet, body.rows[0]) : [...body.rows].map(inPage)
  if (items.length < 3 || table.closest('.budget')) continue
  let order = items, page = 0, apply = () => body.append(...order.map(item => item.row))
  all('thead th', table).forEach((head, column) => {
    if (!head.textContent) return
    const button = make('button', head, {className: 'sort', textContent: head.textContent})
    head.firstChild.remove()
    button.addEventListener('click', () => {  // what has no figure comes last either way
      const up = head.ariaSort !== 'ascending'
      all('thead th', table).forEach(other => other.ariaSort = null)
      head.ariaSort = up ? 'ascending' : 'descending'
      const keyed = items.map(item => [amount(item.keys[column]), item.keys[column], item]), by = up ? 1 : -1
      keyed.sort(([a, s], [b, t]) => (a === null || b === null ? (a === null) - (b === null) || by * byName.compare(s, t) : by * (a - b)))
      order = keyed.map(([, , item]) => item)
      apply()
    })
  })
  if (!table.classList.contains('find')) continue
  const bar = make('div', document.body, {className: 'bar-of-table'})
  table.closest('.scroll').before(bar)
  const search = make('input', bar, {type: 'search', placeholder: 'search'})
  search.ariaLabel = `search ${table.closest('.scroll').ariaLabel}`
  const filter = make('select', bar), count = make('span', bar, {className: 'quiet'})
  const [back, next] = [['‹ before', -1], ['next ›', 1]].map(([textContent, by]) =>
    make('button', bar, {textContent, hidden: true, onclick: () => { page += by; apply() }}))
  filter.ariaLabel = 'show'
  const words = new Map([['everything', () => true]])
  if (items.some(item => item.needs)) words.set('what needs attention', item => item.needs)
  for (const word of new Set(items.map(item => item.word).filter(Boolean))) words.set(word, item => item.word === word)
  for (const word of words.keys()) make('option', filter, {textContent: word})
  apply = () => {
    const wanted = search.value.toLowerCase(), fits = words.get(filter.value)
    const shown = order.filter(item => fits(item) && item.texts.some(text => text.toLowerCase().includes(wanted)))
    count.textContent = `${shown.length.toLocaleString('en')} of ${items.length.toLocaleString('en')}`
    const found = new Set(shown)
    if (!isPaged) return body.append(...order.map(item => (item.row.hidden = !found.has(item), item.row)))
    page = Math.min(page, Math.max(Math.ceil(shown.length / PAGE) - 1, 0))
    body.replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map(item => item.row))
    if (shown.length > PAGE) count.textContent += `, ${page * PAGE + 1} to ${Math.min((page + 1) * PAGE, shown.length)}`
    back.hidden = !page
    next.hidden = (page + 1) * PAGE >= shown.length
  }
  if (words.has('what needs attention')) filter.value = 'what needs attention'
  for (const input of [search, filter]) input.addEventListener('input', () => { page = 0; apply() })
  if (isPaged) table.closest('section').querySelector('.rest')?.remove()
  else addEventListener('beforeprint', () => items.forEach(({row}) => row.hidden = false))
  addEventListener('afterprint', apply)
  apply()
}

// ---- squares of a large fleet: read one at the pointer
if (fleet) all('.squares svg').forEach((svg, rack) => {
  const {width, height} = svg.viewBox.baseVal
  const text = (column, host) => fleet.columns[column][0][fleet.columns[column][1][host]]
  const placeOf = ([x, y]) => Math.floor(y * height / 10) * width / 10 + Math.floor(x * width / 10)
  const hostAt = event => fleet.racks[rack][placeOf(at(event, svg))]
  svg.querySelector('title').remove()
  svg.addEventListener('pointerleave', event => tell(event, ''))
  svg.addEventListener('pointermove', event => {
    const host = hostAt(event)
    tell(event, host === undefined ? '' : `${text(0, host)}: ${text(1, host)}\nlongest ${text(2, host)}`)
  })
  if (fleet.pages.length) svg.addEventListener('click', event => { const page = fleet.pages[hostAt(event)]; if (page) location.href = page })
})

addEventListener('beforeprint', () => all('details').forEach(part => part.open = true))

// ---- commands: copied at a click
for (const code of all('code.typed')) {  // what a document quotes has no button
  const button = make('button', document.body, {className: 'copy', textContent: 'copy'})
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
