// A chain of cells in the heap of Go: chain CELLS. Prints rows `name,value`.
package main

import (
    "fmt"
    "os"
    "runtime"
    "runtime/debug"
    "strconv"
    "syscall"
    "time"
)

type cell struct {
    first uint64
    rest  *cell
}

var chain *cell

func cpuTime() time.Duration {
    var usage syscall.Rusage
    if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
        panic(err)
    }
    return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(name string, cells int, operation func()) {
    cpu, wall := cpuTime(), time.Now()
    operation()
    passed := time.Since(wall)
    spent := cpuTime() - cpu
    fmt.Printf("%s_ns,%f\n", name, float64(spent.Nanoseconds())/float64(cells))
    fmt.Printf("%s_ms,%f\n", name, spent.Seconds()*1e3)
    fmt.Printf("%s_wall_ms,%f\n", name, passed.Seconds()*1e3)
}

func grow(cells int) {
    for range cells {
        chain = &cell{1, chain}
    }
}

// thin takes about half of the cells out of the chain, and returns how many are left.
func thin() int {
    random, left, last := uint64(1), 1, chain
    for cell := chain.rest; cell != nil; cell = cell.rest {
        random ^= random << 13
        random ^= random >> 7
        random ^= random << 17
        if random>>63 == 0 {
            left++
            last.rest = cell
            last = cell
        }
    }
    last.rest = nil
    return left
}

// The pauses of a collection, in which the program does not run.
func pause() float64 {
    var stats runtime.MemStats
    runtime.ReadMemStats(&stats)
    return float64(stats.PauseTotalNs) / 1e6
}

func main() {
    if len(os.Args) != 2 {
        os.Exit(2)
    }
    cells, err := strconv.Atoi(os.Args[1])
    if err != nil || cells < 2 {
        os.Exit(2)
    }
    // Only the collections that are asked for.
    debug.SetGCPercent(-1)
    measure("build", cells, func() { grow(cells) })
    runtime.GC()
    measure("live", cells, runtime.GC)
    left := thin()
    measure("half", cells, runtime.GC)
    measure("refill_half", cells-left, func() { grow(cells - left) })
    chain = nil
    before := pause()
    measure("dead", cells, runtime.GC)
    fmt.Printf("dead_pause_ms,%f\n", pause()-before)
    measure("refill_dead", cells, func() { grow(cells) })
}
