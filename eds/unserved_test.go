package eds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
)

// TestTypesThatAreNotServedAreShown: the requests get no answer, and clients, log and
// metrics show why.
func TestTypesThatAreNotServedAreShown(t *testing.T) {
	const listeners, addresses = resourcev3.ListenerType, "type.googleapis.com/istio.workload.Address"
	var log bytes.Buffer
	inOneBubble(t, Options{Log: zerolog.New(&log).Level(zerolog.InfoLevel)}, func(t *testing.T, b *bench) {
		d := b.delta()
		d.send(subscribe(addresses, "*"))
		d.send(subscribe(resourcev3.EndpointType, "a"))
		d.next()
		s := b.state() // the second stream, also in the order of rows
		for range 3 {
			s.send(want(listeners, "one", "two"))
		}
		s.nothing()
		var rows []string
		for _, c := range b.server.Clients(nil) {
			rows = append(rows, fmt.Sprintf("%s %s %d/%d %.15s", c.ID, c.TypeURL, c.Stale, c.Resources, c.LastError))
		}
		equal(t, "clients", strings.Join(rows, "\n"), strings.Join([]string{
			"dp-1 " + resourcev3.EndpointType + " 1/1 ", "dp-1 " + addresses + " 1/1 not served here", "dp-1 " + listeners + " 2/2 not served here",
		}, "\n"))
		if row := b.server.Clients(nil)[2].LastError; !strings.Contains(row, "lds_config") {
			t.Errorf("of listeners: %s", row)
		}
		for i := range 1000 {
			s.send(want(fmt.Sprint("made-up-", i), "x"))
		}
		synctest.Wait()
		if n := len(b.server.Clients(nil)); n > 2+maxUnserved {
			t.Errorf("%d rows", n)
		}
		if n := strings.Count(log.String(), "made-up-"); n > maxUnserved {
			t.Errorf("%d lines about types that a client has made up", n)
		}
		equal(t, "series", testutil.CollectAndCount(b.server.recorder.metrics.parked), len(elsewhere)+1)
		d.cancel()
		s.cancel()
	})
	for typeURL, what := range map[string]string{listeners: "lds_config", addresses: "ask the server"} {
		lines := 0
		for line := range strings.Lines(log.String()) {
			if strings.Contains(line, typeURL) && strings.Contains(line, `"xds_type_not_served","node":"dp-1"`) && strings.Contains(line, what) {
				lines++
			}
		}
		equal(t, "lines about "+typeURL, lines, 1)
	}
}
