package coordinator_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	replicav1 "hdsd/gen/hdsd/replica/v1"
	"hdsd/test/etcd"
)

// rawCodec sends bytes as they are.
type rawCodec struct{}

func (rawCodec) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (rawCodec) Unmarshal(_ []byte, _ any) error { return nil }
func (rawCodec) Name() string                    { return "proto" }

// peerAddress returns the address of a replica for others.
func (s *site) peerAddress() string {
	s.t.Helper()
	_, text := s.get("/v1/replicas")
	_, rest, _ := strings.Cut(text, `"address":"`)
	address, _, _ := strings.Cut(rest, `"`)
	return address
}

// TestHostilePeers covers processes that another replica's certificate admits: they send what is no message, or far too
// much, or nothing. The replica goes on, within bounds.
func TestHostilePeers(t *testing.T) {
	f := newFleet(t, etcd.Start(t), static("web", "127.0.0.1:1"), "r1")
	s := f.sites["r1"]
	s.ready()
	address := s.peerAddress()
	var peak uint64
	watching, stop := context.WithCancel(t.Context())
	var watch sync.WaitGroup
	watch.Go(func() {
		for watching.Err() == nil {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			time.Sleep(10 * time.Millisecond)
		}
	})
	garbage := make([]byte, 20<<20) // shared by all
	for i := range garbage {
		garbage[i] = 0xff
	}
	var attacks sync.WaitGroup
	for range 4 {
		conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, method := range []string{"/hdsd.replica.v1.Links/Link", "/hdsd.replica.v1.Peers/Ask", "/hdsd.replica.v1.Peers/Copy"} {
			for range 8 {
				attacks.Go(func() {
					stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, method, grpc.ForceCodec(rawCodec{}))
					if err != nil {
						t.Error(err)
						return
					}
					_ = stream.SendMsg(garbage) // the end has the reason
					if _ = stream.CloseSend(); stream.RecvMsg(nil) == nil {
						t.Errorf("%s answers garbage", method)
					}
				})
			}
		}
	}
	attacks.Wait()
	stop()
	watch.Wait()
	if peak > 1200<<20 {
		t.Errorf("%d MB in use", peak>>20)
	}
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	silent, err := replicav1.NewLinksClient(conn).Link(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := silent.Recv(); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("a stream without a hello ends with %v", err)
	}
	if copied, err := replicav1.NewPeersClient(conn).Copy(t.Context(), &replicav1.CopyRequest{Fleet: "x"}); err != nil {
		t.Error(err)
	} else if _, err := copied.Recv(); status.Code(err) != codes.FailedPrecondition || errors.Is(err, io.EOF) {
		t.Errorf("a copy for another fleet: %v", err)
	}
	if code, text := s.get("/readyz"); code != http.StatusOK {
		t.Errorf("%d %s", code, text)
	}
}
