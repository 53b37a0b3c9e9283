package file

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"hdsd/source"
)

const anAssignment = `
- "@type": type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment
  cluster_name: NAME
  endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
  policy: {endpoint_stale_after: 10s}`

// leasedFile has assignments with a lease of ten seconds: of an EDS cluster, alone, and in a
// STATIC cluster.
var leasedFile = `resources:
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: eds
  type: EDS
  eds_cluster_config: {service_name: service, eds_config: {path_config_source: {path: x}}}
- "@type": type.googleapis.com/envoy.config.cluster.v3.Cluster
  name: static
  load_assignment:
    cluster_name: static
    endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 10.0.0.1, port_value: 80}}}}]}]
    policy: {endpoint_stale_after: 10s}` +
	strings.ReplaceAll(anAssignment, "NAME", "service") + strings.ReplaceAll(anAssignment, "NAME", "alone")

// TestLeases: each read of the files renews the leases of assignments, as in an Envoy. What is
// not renewed has no endpoints until the files are read again.
func TestLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		path := filepath.Join(t.TempDir(), "eds.yaml")
		put := func(text string) {
			t.Helper()
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		var got []string // of each set
		r := &runner{
			Source: New(Options{Name: "x", Path: path, Log: zerolog.New(&log)}), lease: stopped(),
			deliver: func(set *source.Set) { got = append(got, leasesOf(set)) },
		}
		read := func() {
			t.Helper()
			if err := r.reload(); err != nil {
				t.Fatal(err)
			}
		}
		wait := func(d time.Duration) { // as loop does
			for end := time.After(d); ; {
				select {
				case <-r.lease.C:
					r.hand()
				case <-end:
					return
				}
			}
		}
		expect := func(want ...string) {
			t.Helper()
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("the sets are %q, want %q", got, want)
			}
			got = nil
		}
		const all = "alone=1 eds=1 static=1"
		const ended = `alone=0! eds=0! static=1 "service" "alone"`
		put(leasedFile)
		read()
		wait(8 * time.Second)
		read() // with equal content
		wait(8 * time.Second)
		expect(all)
		wait(2*time.Second + time.Millisecond)
		expect(ended)
		if want := `"event":"upstream_assignments_stale","source":"x","count":2,"names":["alone","service"]`; strings.Count(log.String(), want) != 1 {
			t.Errorf("the log is %s, want %s", &log, want)
		}
		wait(time.Minute)
		expect()
		read()
		expect(all)
		wait(8 * time.Second)
		put("no file of Envoy's")
		read() // renews nothing
		expect(all + " unreadable")
		wait(2*time.Second + time.Millisecond)
		expect(ended + " unreadable")
		put(leasedFile)
		read()
		wait(8 * time.Second)
		put(leasedFile + "\n  no_such_field: 1") // the last one is rejected, and its valid version stays
		read()
		wait(2*time.Second + time.Millisecond)
		expect(all, all+" rejected", `alone=0! eds=1 static=1 "alone" rejected`)
		put(strings.ReplaceAll(leasedFile, "10s", "0.0009s")) // an Envoy takes whole milliseconds
		read()
		wait(time.Minute)
		expect(all)
	})
}

// leasesOf puts a set into a line: endpoints of each cluster, and what the problems are about.
func leasesOf(set *source.Set) string {
	var line []string
	for _, c := range set.Clusters {
		text := fmt.Sprintf("%s=%d", c.Name, len(c.Assignment.Message().GetEndpoints()))
		if c.Stale {
			text += "!"
		}
		line = append(line, text)
	}
	about := ""
	for _, p := range set.Problems {
		switch _, after, lease := strings.Cut(p.Message, "it has no endpoints: the lease of the ClusterLoadAssignment "); {
		case lease:
			name, _, _ := strings.Cut(after, " ")
			line = append(line, name)
		case p.Resource != "":
			about = "rejected"
		default:
			about = "unreadable"
		}
	}
	if about != "" {
		line = append(line, about)
	}
	return strings.Join(line, " ")
}
