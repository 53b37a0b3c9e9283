package scale

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ticksPerSecond is the unit of processor time in /proc.
const ticksPerSecond = 100

// usage is what a process has used so far.
type usage struct {
	at        time.Time
	processor time.Duration
	resident  int // bytes
	anonymous int // bytes of these that are no pages of files
	peak      int // bytes
}

// usageOf reads /proc.
func usageOf(t testing.TB, pid int) usage {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	u := usage{at: time.Now()}
	_, rest, _ := strings.Cut(string(stat), ") ") // the name may have spaces
	fields := strings.Fields(rest)
	ticks := number(t, fields[11]) + number(t, fields[12]) // utime, stime
	u.processor = time.Duration(ticks) * time.Second / ticksPerSecond
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		switch fields := strings.Fields(line); fields[0] {
		case "VmRSS:":
			u.resident = number(t, fields[1]) << 10
		case "RssAnon:":
			u.anonymous = number(t, fields[1]) << 10
		case "VmHWM:":
			u.peak = number(t, fields[1]) << 10
		}
	}
	return u
}

func number(t testing.TB, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// cores is how many processors were kept busy from one time to another.
func cores(from, to usage) float64 {
	return (to.processor - from.processor).Seconds() / to.at.Sub(from.at).Seconds()
}

// load is the machine's load average of the last minute.
func load(t testing.TB) float64 {
	t.Helper()
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		t.Fatal(err)
	}
	average, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return average
}
