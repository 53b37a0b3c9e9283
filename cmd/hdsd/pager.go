package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"

	"hdsd/internal/table"
)

// errQuit ends a list whose reader has left the pager.
var errQuit = errors.New("the pager was left")

// pager shows output longer than the terminal in another program.
type pager struct {
	terminal *os.File
	command  string
	lines    int // lines of the terminal

	held    bytes.Buffer // output until it is clear whether it fits
	program *exec.Cmd
	input   io.WriteCloser // of program
}

// newPager returns the pager of a terminal, or nil if there is none: PAGER has to name one, so
// that nothing waits for a key unexpectedly.
func newPager(w io.Writer) *pager {
	command, height := os.Getenv("PAGER"), table.Height(w)
	if file, ok := w.(*os.File); ok && height > 0 && command != "" && command != "cat" {
		return &pager{terminal: file, command: command, lines: height - 2} // the prompt and the last line
	}
	return nil
}

// Write implements io.Writer. Its error is errQuit if the reader has left.
func (p *pager) Write(text []byte) (int, error) {
	if p.program != nil {
		if _, err := p.input.Write(text); err != nil {
			return 0, errQuit
		}
		return len(text), nil
	}
	p.held.Write(text)
	if bytes.Count(p.held.Bytes(), []byte("\n")) <= p.lines {
		return len(text), nil
	}
	if err := p.start(); err != nil {
		return 0, err
	}
	held := p.held.Bytes()
	p.held = bytes.Buffer{}
	if _, err := p.input.Write(held); err != nil {
		return 0, errQuit
	}
	return len(text), nil
}

// start begins to page. Without the program, everything goes to the terminal.
func (p *pager) start() error {
	p.program = exec.Command("sh", "-c", p.command) //nolint:gosec,noctx // what the user says; it ends when the user leaves it
	p.program.Stdout, p.program.Stderr = p.terminal, os.Stderr
	if _, set := os.LookupEnv("LESS"); !set {
		p.program.Env = append(os.Environ(), "LESS=FRX")
	}
	var err error
	if p.input, err = p.program.StdinPipe(); err != nil {
		return err
	}
	return p.program.Start()
}

// Close shows held output, and waits until the reader leaves.
func (p *pager) Close() error {
	if p.program == nil {
		_, err := p.terminal.Write(p.held.Bytes())
		return err
	}
	_ = p.input.Close() // the reader may have left
	_ = p.program.Wait()
	return nil
}
