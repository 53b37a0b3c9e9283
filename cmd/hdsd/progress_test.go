package main

import (
	"bytes"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestProgressShowsAfterADelay(t *testing.T) {
	for took, want := range map[time.Duration]string{
		900 * time.Millisecond:  "",
		1100 * time.Millisecond: "\r\x1b[K1 rows\r\x1b[K",
		1500 * time.Millisecond: "\r\x1b[K1 rows\r\x1b[K2 rows\r\x1b[K3 rows\r\x1b[K",
	} {
		synctest.Test(t, func(t *testing.T) {
			var out bytes.Buffer
			rows := 0
			p := &progress{w: &out, ends: make(chan struct{}), text: func() string { rows++; return fmt.Sprintf("%d rows", rows) }}
			p.work.Go(p.run)
			time.Sleep(took) // of the bubble's clock
			p.stop()
			p.stop()
			if out.String() != want {
				t.Errorf("after %v: %q, want %q", took, &out, want)
			}
		})
	}
	var out bytes.Buffer
	startProgress(&out, func() string { t.Error("told to nobody"); return "" })()
}
