package main

import (
	"fmt"
	"io"
	"sync"
	"time"

	"hdsd/internal/printable"
	"hdsd/internal/table"
)

// Progress shows after progressDelay, and is updated every progressStep.
const (
	progressDelay = time.Second
	progressStep  = 200 * time.Millisecond
)

// progress keeps one line of a terminal up to date until stop. stop ends its goroutine
// and removes the line.
type progress struct {
	w    io.Writer
	text func() string
	once sync.Once
	ends chan struct{}
	work sync.WaitGroup
}

// startProgress shows progress if to is a terminal.
func startProgress(w io.Writer, text func() string) (stop func()) {
	if !table.IsTerminal(w) {
		return func() {}
	}
	p := &progress{w: w, text: text, ends: make(chan struct{})}
	p.work.Go(p.run)
	return p.stop
}

// stop may be called again.
func (p *progress) stop() {
	p.once.Do(func() { close(p.ends) })
	p.work.Wait()
}

func (p *progress) run() {
	timer := time.NewTimer(progressDelay)
	defer timer.Stop()
	for shown := false; ; shown = true {
		select {
		case <-p.ends:
			if shown {
				fmt.Fprint(p.w, "\r\x1b[K")
			}
			return
		case <-timer.C:
			fmt.Fprintf(p.w, "\r\x1b[K%s", printable.Text(p.text()))
			timer.Reset(progressStep)
		}
	}
}
