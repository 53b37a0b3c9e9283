package crash

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"
)

// kill runs the child that a variable stands for, in a folder from a number on,
// until a moment after it has printed some lines. Each is given to printed; what
// was cut off was not printed.
func kill(t *testing.T, variable, dir string, first, lines int, delay time.Duration, printed func(line []byte)) {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), variable+"="+dir, firstVariable+"="+strconv.Itoa(first))
	command.Stderr = os.Stderr
	pipe, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(pipe)
	for n := 0; ; n++ {
		if n == lines {
			timer := time.AfterFunc(delay, func() { _ = command.Process.Kill() })
			defer timer.Stop()
		}
		line, err := in.ReadBytes('\n')
		if err != nil {
			break
		}
		printed(line)
	}
	if err := command.Wait(); err == nil || command.ProcessState.Exited() {
		t.Fatalf("the child ended by itself: %v", err)
	}
}

// killCounting is kill for a child that prints numbers. It gives the last one.
func killCounting(t *testing.T, variable, dir string, first, lines int, delay time.Duration) (last int) {
	t.Helper()
	kill(t, variable, dir, first, lines, delay, func(line []byte) { last = decoded[int](t, line) })
	return last
}

func decoded[T any](t *testing.T, line []byte) (value T) {
	t.Helper()
	if err := json.Unmarshal(line, &value); err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return value
}
