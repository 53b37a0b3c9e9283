package alone

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
	"hdsd/validate"
)

// Verdict says how a cluster through hdsd compares to the same cluster alone.
type Verdict string

// The verdicts.
const (
	Same      Verdict = "same"
	Differs   Verdict = "differs on purpose"
	Lost      Verdict = "lost"          // validate warns, naming field and effect
	Left      Verdict = "left to Envoy" // the cluster keeps its checks
	NoBearing Verdict = "no bearing"    // on health, hosts or weights
)

// Case is a cluster and what happens to it. In Cluster, $name stands for its name,
// $0 to $9 for an endpoint that is an upstream, @0 to @9 for its address, #0 to #9 for
// its port, and $eds for where its assignment is, and $ca for who signed the certificates of the upstreams.
type Case struct {
	Name       string
	Cluster    string           // a Cluster, as YAML
	Assignment string           // of an EDS cluster: its ClusterLoadAssignment
	Upstream   upstream.Options // what the upstreams are
	Steps      []Step
	Want       Verdict
	On         map[string]Verdict // by release: another verdict; empty: not played
	Warn       string             // what validate names; always of a Lost one
	Slow       bool               // for HDSD_ALONE=full only
}

// verdict is what a case wants with a release of Envoy.
func (c *Case) verdict(version string) Verdict {
	if other, ok := c.On[version]; ok {
		return other
	}
	return c.Want
}

// Result is a case played with a release of Envoy.
type Result struct {
	Case, Version string
	Sent, Failed  [2]int // requests, by Plane
}

// Run plays cases on a rig, all at the same time.
func (r *Rig) Run(t *testing.T, cases []Case) {
	for i := range cases {
		c := &cases[i]
		if c.Slow && !full() || c.verdict(r.Version) == "" {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, r, c)
			for _, step := range c.Steps {
				step(p)
			}
			p.judge()
		})
	}
}

// Sequence plays cases on a rig, one after the other.
func (r *Rig) Sequence(t *testing.T, cases []Case) {
	for i := range cases {
		t.Run("case", func(t *testing.T) { r.Run(t, cases[i:i+1]) })
	}
}

// full tells whether slow cases and all releases are wanted.
func full() bool { return os.Getenv("HDSD_ALONE") == "full" }

// judge compares what the data planes did, and holds it to the case's verdict.
func (p *Play) judge() {
	p.t.Helper()
	want := p.c.verdict(p.rig.Version)
	found := p.differences()
	result := Result{Case: p.c.Name, Version: p.rig.Version}
	for _, record := range p.records {
		p.t.Log(record)
		for plane := range result.Sent {
			result.Sent[plane] += record.Sent[plane]
			result.Failed[plane] += record.Failed[plane]
		}
	}
	switch want {
	case Same, Left:
		for _, difference := range found {
			p.t.Error(difference)
		}
	case Differs, Lost:
		if len(found) == 0 {
			p.t.Errorf("there is no difference any more: the verdict %q is wrong", want)
		}
	}
	if !envoy.Await(fleet.Patience, func() bool { return p.keepsChecks() == (want == Left) }) {
		p.t.Errorf("the data plane has health checks of its own: %v, want %v", want != Left, want == Left)
	}
	if p.c.Warn != "" || want == Lost {
		if warned := p.warnings(); p.c.Warn == "" || !strings.Contains(warned, p.c.Warn) {
			p.t.Errorf("hdsd validate does not name %q: %s", p.c.Warn, warned)
		}
	}
	p.rig.mu.Lock()
	defer p.rig.mu.Unlock()
	p.rig.results = append(p.rig.results, result)
}

// keepsChecks tells whether the data plane behind hdsd has health checks of its own for the
// cluster. It has until hdsd checks it.
func (p *Play) keepsChecks() bool {
	p.t.Helper()
	var dump struct {
		Configs []struct {
			Active []struct {
				Cluster struct {
					Name   string            `json:"name"`
					Checks []json.RawMessage `json:"health_checks"`
				} `json:"cluster"`
			} `json:"dynamic_active_clusters"`
		} `json:"configs"`
	}
	if err := json.Unmarshal(p.rig.Planes[Through].ConfigDump(p.t), &dump); err != nil {
		p.t.Fatal(err)
	}
	for _, config := range dump.Configs {
		for _, active := range config.Active {
			if active.Cluster.Name == p.name && len(active.Cluster.Checks) > 0 {
				return true
			}
		}
	}
	return false
}

// warnings is what hdsd validate says of the cluster.
func (p *Play) warnings() string {
	p.t.Helper()
	path := filepath.Join(p.t.TempDir(), "clusters.yaml")
	text := "resources:\n" + item(clusterType, strings.ReplaceAll(p.given.Cluster, "$eds", "{resource_api_version: V3, ads: {}}"))
	if p.given.Assignment != "" {
		text += item(assignmentType, p.given.Assignment)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	var said strings.Builder
	for _, problem := range validate.Examine(p.t.Context(), &configv1.Config{Sources: []*configv1.Source{{Name: "local", ConfigSource: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: path}},
	}}}}, nil).Problems {
		fmt.Fprintln(&said, problem)
	}
	return said.String()
}
