package xds

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/envoy/rules"
)

// TestLargeResponses: how large a response may be is configured, and one that is
// too large is told together with how it can be taken.
func TestLargeResponses(t *testing.T) {
	most := func(bytes int) func(*Options) { return func(o *Options) { o.MaxMessageBytes = bytes } }
	inNetwork(t, func(t *testing.T, n *network) {
		script := newScript(t)
		defer n.serve("one", script.register)()
		large := inline("a", "10.0.0.1")
		large.AltStatName = strings.Repeat("x", 5000)
		from := grpcSource(corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC, "one")
		r := n.run(from, most(4000))
		next(t, script.delta).send(change(rules.Cluster, "1", wrap("a", "1", large)))
		time.Sleep(time.Millisecond)
		has(t, "too large", r.Status().Types[0].LastError, "larger than max", "limits.max_message_bytes")
		r.stop()
		r = n.run(from, most(6000))
		next(t, script.delta).send(change(rules.Cluster, "1", wrap("a", "1", large)))
		equal(t, "taken", said(r.latest()), "a=10.0.0.1")
		r.stop()

		w := newWeb()
		defer n.serveHTTP("web", w)()
		w.say(cds, `{"version_info":"1","resources":[`+jsonCluster("db", "10.0.0.9")+`],"nonce":"`+strings.Repeat("x", 5000)+`"}`)
		r = n.run(restSource("http://web/"), most(4000))
		time.Sleep(time.Millisecond)
		has(t, "too large", r.Status().Types[0].LastError, "more than 4000 bytes", "limits.max_message_bytes")
		r.stop()
		r = n.run(restSource("http://web/"), most(6000))
		equal(t, "taken", said(r.latest()), "db=10.0.0.9")
		r.stop()
	})
}
