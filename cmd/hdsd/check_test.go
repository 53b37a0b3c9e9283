package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
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

// TestACheckerShowsAToken: that of a file as it is when it connects, or of the environment.
func TestACheckerShowsAToken(t *testing.T) {
	for name, c := range map[string]struct {
		variable string
		file     bool
	}{"file": {file: true}, "environment": {variable: "n3w"}, "both": {"0ther", true}} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			file := filepath.Join(t.TempDir(), "token")
			write := func(text string) {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
			write("0ld\n")
			address := serveFake(t, newFake(), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
				shown := metadata.ValueFromIncomingContext(stream.Context(), "authorization")
				if len(shown) == 1 && shown[0] == "Bearer n3w" {
					cancel()
				}
				write("n3w\n")
				return status.Errorf(codes.Unauthenticated, "shown %q", shown)
			}))
			arguments := []string{"check", "--server", address, "--id", "c"}
			if c.file {
				arguments = append(arguments, "--token-file", file)
			}
			t.Setenv("HDSD_TOKEN", c.variable)
			if code := run(ctx, arguments, io.Discard, io.Discard); code != exitDone {
				t.Errorf("exit status %d", code)
			}
		})
	}
	t.Setenv("HDSD_TOKEN", "s3cret")
	for _, server := range []string{"192.0.2.1:18000", "127.0.0.1:1,192.0.2.1:18000"} {
		if code, _, errors := hdsd(t, "check", "--server", server, "--id", "c"); code != exitUsage || !strings.Contains(errors, "HDSD_TOKEN would be readable") {
			t.Errorf("%s without TLS: exit status %d, %s", server, code, errors)
		}
	}
	if code, _, errors := hdsd(t, "check", "--server", "127.0.0.1:1,hdsd-2", "--id", "c"); code != exitUsage || !strings.Contains(errors, `--server "hdsd-2"`) {
		t.Errorf("without a port: exit status %d, %s", code, errors)
	}
}
