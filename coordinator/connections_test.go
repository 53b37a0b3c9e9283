package coordinator

import (
	"bytes"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"hdsd/internal/conns"
)

// TestAnInsecureListenerIsSaidEveryDay: the warning stands for as long as its cause.
func TestAnInsecureListenerIsSaidEveryDay(t *testing.T) {
	on, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close()
	var said bytes.Buffer
	w := &watched{name: "grpc", Listener: conns.Listen(on, conns.Options{}), log: zerolog.New(&said)}
	began := time.Now()
	w.look(began)
	w.warnInsecure(began)
	for hours, want := range []int{0: 1, 23: 1, 24: 2, 25: 2, 47: 2, 48: 3} {
		if want == 0 {
			continue
		}
		w.look(began.Add(time.Duration(hours) * time.Hour))
		if got := strings.Count(said.String(), "listener_insecure"); got != want {
			t.Errorf("after %d hours it was said %d times, want %d", hours, got, want)
		}
	}
}
