package main

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// noticed is a log that ends a command once it has a line with a text.
type noticed struct {
	mu   sync.Mutex
	log  bytes.Buffer
	text string
	end  context.CancelFunc
}

// Write implements io.Writer.
func (n *noticed) Write(line []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if strings.Contains(string(line), n.text) {
		n.end()
	}
	return n.log.Write(line)
}

// TestACheckerSaysThatTheCoordinatorSpeaksTLS, as other commands do.
func TestACheckerSaysThatTheCoordinatorSpeaksTLS(t *testing.T) {
	_, pair := certify(t, "hdsd.test")
	address := serveFake(t, newFake(), grpc.Creds(credentials.NewServerTLSFromCert(&pair)))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log := &noticed{text: "coordinator_lost", end: cancel}
	if status := run(ctx, []string{"check", "--server", address, "--id", "c"}, log, log); status != exitDone {
		t.Errorf("exit status %d", status)
	}
	if got := log.log.String(); !strings.Contains(got, "speaks TLS: give --tls-ca") {
		t.Errorf("says %s", got)
	}
}
