package gate_test

import (
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"hdsd/internal/gate"
)

func TestCloseWaitsForCallsAndTheirGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.New()
		if !g.Enter() || g.Closed() {
			t.Fatal("a new gate is closed")
		}
		g.Go(func() {
			<-g.Closing()
			time.Sleep(time.Minute)
		})
		go func() {
			<-g.Closing()
			time.Sleep(time.Second)
			g.Leave()
		}()
		start := time.Now()
		go g.Close() // twice is as once
		g.Close()
		if waited := time.Since(start); waited != time.Minute {
			t.Errorf("Close took %v, want a minute", waited)
		}
		if g.Enter() || !g.Closed() {
			t.Error("a closed gate lets a call in")
		}
	})
}

func TestErrClosingTellsClientsToConnectAgain(t *testing.T) {
	if code := status.Code(gate.ErrClosing); code != codes.Unavailable {
		t.Errorf("got %v, want UNAVAILABLE", code)
	}
}
