package xds

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"google.golang.org/protobuf/types/known/durationpb"

	"hdsd/envoy/rules"
)

// TestEventsOfAServerAreFew, however often it causes one: each kind is logged once a second, with
// the number of others.
func TestEventsOfAServerAreFew(t *testing.T) {
	const each = 20 // in two seconds
	inNetwork(t, func(t *testing.T, n *network) {
		var log bytes.Buffer
		s := newScript(t)
		defer n.serve("one", s.register)()
		r := n.run(deltaSource, func(o *Options) { o.Log = zerolog.New(zerolog.SyncWriter(&log)) })
		defer r.stop()
		p := next(t, s.delta)
		for i := range each {
			name := fmt.Sprint("web-", i)
			p.send(change(rules.Cluster, "n", wrap(name, "1", eds(name, ""))))
			synctest.Wait()
			a := leased(name, "10.0.0.1")
			a.Policy.EndpointStaleAfter = durationpb.New(10 * time.Second)
			p.send(change(rules.Assignment, "n", wrap(name, "1", a)))
			short := wrap("short-"+name, "1", inline("short-"+name))
			short.Ttl = durationpb.New(10 * time.Second)
			p.send(change(rules.Cluster, "n", short))
			synctest.Wait()
			p.send(change("type.googleapis.com/envoy.config.route.v3.RouteConfiguration", "n"))
			p.send(change(rules.Cluster, "n", wrap(name+"-bad", "1", endpoints("no cluster"))))
			synctest.Wait()
			time.Sleep(2 * time.Second / each)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for _, event := range []string{"upstream_assignments_stale", "upstream_resources_expired", "upstream_ignored", "upstream_refused"} {
			if got := strings.Count(log.String(), `"event":"`+event+`"`); got != 2 {
				t.Errorf("%s is logged %d times", event, got)
			}
		}
		has(t, "others", log.String(), `"more":9`)
	})
}
