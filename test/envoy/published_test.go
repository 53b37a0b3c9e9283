package envoy_test

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	"google.golang.org/grpc"

	configv1 "hdsd/gen/hdsd/config/v1"

	"hdsd/catalog"
	"hdsd/eds"
	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/publish"
	"hdsd/ruling"
	"hdsd/source/file"
	"hdsd/test/envoy"
)

var (
	publishedSeed     = flag.Uint64("published-seed", 0, "the seed of TestAnEnvoyTakesWhatIsPublished; 0: another each time")
	publishedRuns     = flag.Int("published-runs", 20, "how many sets of clusters TestAnEnvoyTakesWhatIsPublished publishes")
	publishedVersions = flag.String("published-versions", envoy.Version, "the Envoys of TestAnEnvoyTakesWhatIsPublished, with commas")
)

// TestAnEnvoyTakesWhatIsPublished of odd clusters and assignments in a file: hdsd leaves out
// what an Envoy would refuse, so that the neighbours of that lose nothing.
func TestAnEnvoyTakesWhatIsPublished(t *testing.T) {
	seed := cmp.Or(*publishedSeed, rand.Uint64())
	t.Logf("the seed is %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	p := newPublication(t)
	planes := map[string]*envoy.Process{}
	for version := range strings.SplitSeq(*publishedVersions, ",") {
		for _, delta := range []bool{false, true} {
			id := fmt.Sprintf("%s, delta: %t", version, delta)
			planes[id] = envoy.StartDataPlane(t, envoy.DataPlane{ID: id, ADS: p.address, Version: version, Delta: delta, CDS: true, Route: "neighbour-0"})
		}
	}
	for run := range *publishedRuns {
		p.replace(oddFile(random, run))
		for form, of := range forms {
			p.form(of)
			if !envoy.Await(time.Minute, func() bool { return p.answered(len(planes)) }) {
				t.Fatalf("no answer, %s, about %s", form, p.missing)
			}
			for id, plane := range planes {
				p.keptNeighbours(id, plane)
			}
			if t.Failed() {
				return // what is refused stays refused
			}
		}
	}
	t.Logf("%d clusters were published, %d rejected, and %d endpoints left out", p.published, p.rejected, p.leftOut)
	if p.published == 0 || p.rejected == 0 || p.leftOut == 0 {
		t.Error("that tries nothing")
	}
}

// publication is hdsd without checkers: a file's clusters go to data planes.
type publication struct {
	t       *testing.T
	path    string
	address string
	source  *file.Source
	rules   *catalog.Rules
	table   *ruling.Table
	server  *eds.Server

	clusters                     map[string]*clusterv3.Cluster // as published
	missing                      []string                      // of what data planes have not answered
	published, rejected, leftOut int
}

// forms are in what forms a cluster is published.
var forms = map[string]func(*catalog.Cluster) *clusterv3.Cluster{
	"before hdsd decides":  func(k *catalog.Cluster) *clusterv3.Cluster { return k.Published(true) },
	"while hdsd decides":   func(k *catalog.Cluster) *clusterv3.Cluster { return k.Published(false) },
	"while hdsd is silent": (*catalog.Cluster).Original,
}

func newPublication(t *testing.T) *publication {
	p := &publication{
		t: t, path: filepath.Join(t.TempDir(), "clusters.yaml"), rules: catalog.NewRules(&configv1.Config{}), server: eds.NewServer(eds.Options{}),
		table: ruling.New(func(health.EndpointID) health.Verdict { return health.Verdict{} }),
	}
	p.source = file.New(file.Options{Name: "odd", Path: p.path})
	p.replace("resources: []")
	p.do(p.table.Start(time.Now()))
	p.do(p.table.Settle(time.Now()))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.address = listener.Addr().String()
	transport := grpc.NewServer(wire.ServerOption())
	p.server.Register(transport)
	served := make(chan error, 1)
	go func() { served <- transport.Serve(listener) }()
	t.Cleanup(func() {
		p.server.Close()
		transport.Stop()
		<-served
	})
	return p
}

// replace publishes a file in place of that before.
func (p *publication) replace(text string) {
	p.t.Helper()
	if err := os.WriteFile(p.path, []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
	set, err := p.source.Load()
	if err != nil {
		p.t.Fatal(err)
	}
	change := ruling.Change{Answered: map[string]bool{"odd": true}, Complete: true, Removed: slices.Clone(p.table.Names())}
	for _, c := range set.Clusters {
		k := catalog.Prepare(c, p.rules)
		change.Changed = append(change.Changed, k)
		change.Removed = slices.DeleteFunc(change.Removed, func(name string) bool { return name == c.Name })
		switch {
		case c.Rejected != "" || !k.IsPublished():
			p.rejected++
		default:
			p.published++
			p.leftOut += len(k.Exclusions())
		}
	}
	p.do(p.table.Apply(time.Now(), change))
}

// form publishes the clusters in another form.
func (p *publication) form(of func(*catalog.Cluster) *clusterv3.Cluster) {
	p.clusters = map[string]*clusterv3.Cluster{}
	var u publish.Update
	for k := range p.table.Clusters() {
		if c := of(k); c != nil {
			p.clusters[c.GetName()] = c
			u.Clusters = append(u.Clusters, publish.Cluster{Message: c})
		}
	}
	p.server.Update(u)
}

// keptNeighbours looks for what a data plane has lost or refused.
func (p *publication) keptNeighbours(id string, plane *envoy.Process) {
	p.t.Helper()
	if !plane.Alive() {
		p.t.Fatalf("%s has ended", id)
	}
	for i := range neighbours {
		name := fmt.Sprintf("neighbour-%d", i)
		envoy.Eventually(p.t, 20*time.Second, "the endpoint of "+name, func() bool { return len(plane.Clusters(p.t)[name]) == 1 })
	}
	for name, n := range plane.Stats(p.t, `update_rejected$`) {
		if n > 0 {
			p.t.Errorf("%s: %s is %d", id, name, n)
		}
	}
}

func (p *publication) do(e ruling.Effects) {
	for _, d := range e.Decisions {
		p.server.Update(d.Update)
		p.server.SetHealth(d.Health)
	}
}

// answered tells whether so many data planes have answered about each cluster, and each
// assignment that a cluster takes from here. What they refuse fails the test.
func (p *publication) answered(planes int) bool {
	wanted := map[string]bool{}
	for _, c := range p.clusters {
		wanted[resourcev3.ClusterType+c.GetName()] = true
		if c.GetType() == clusterv3.Cluster_EDS && c.GetClusterType() == nil {
			wanted[resourcev3.EndpointType+cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())] = true
		}
	}
	refusals := map[string]bool{}
	p.missing = nil
	for s := range p.server.Subscribers() {
		planes--
		left := maps.Clone(wanted)
		for _, r := range s.Resources() {
			if r.State == eds.Refused {
				refusals[s.Node.GetId()+" refuses: "+r.Refusal.Text] = true
			}
			if r.State == eds.Accepted {
				delete(left, r.TypeURL+r.Name)
			}
		}
		for name := range left {
			p.missing = append(p.missing, s.Node.GetId()+": "+name)
		}
	}
	for text := range refusals {
		p.t.Error(text)
	}
	return len(refusals) > 0 || planes == 0 && len(p.missing) == 0
}
