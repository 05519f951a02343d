// A thread that reads the clock, named "trading", beside a goroutine that makes 4 MiB of garbage a ms.
// After so many milliseconds prints the gaps in its loop in ns, one a line.
package main

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

const (
	kept     = 1024
	bytes    = 16 << 10
	shortest = 2 * time.Microsecond
)

var last [kept][]byte

func allocate() {
	for at := 0; ; at = (at + 1) % kept {
		last[at] = make([]byte, bytes)
		if at%(4<<20/bytes) == 0 {
			time.Sleep(time.Millisecond)
		}
	}
}

func main() {
	milliseconds, _ := strconv.Atoi(os.Args[1])
	runtime.LockOSThread()
	name := []byte("trading\x00")
	syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_NAME, uintptr(unsafe.Pointer(&name[0])), 0)
	go allocate()
	time.Sleep(200 * time.Millisecond) // it is moved to its CPU
	gaps := make([]time.Duration, 0, 1<<20)
	start := time.Now()
	for before := start; before.Sub(start) < time.Duration(milliseconds)*time.Millisecond; {
		now := time.Now()
		if gap := now.Sub(before); gap > shortest && len(gaps) < cap(gaps) {
			gaps = append(gaps, gap)
		}
		before = now
	}
	for _, gap := range gaps {
		fmt.Println(gap.Nanoseconds())
	}
}
