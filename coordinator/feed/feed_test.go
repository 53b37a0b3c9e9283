package feed

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
)

// shelf is a Feed with a file of clusters.
type shelf struct {
	*Feed
	t         *testing.T
	path      string
	delivered chan []string // the names of all clusters, after each delivery
}

func newShelf(t *testing.T, name string) *shelf {
	t.Helper()
	s := &shelf{t: t, path: filepath.Join(t.TempDir(), "clusters.yaml"), delivered: make(chan []string, 100)}
	s.move(name)
	var err error
	if s.Feed, err = Open(s.config(), Options{Dir: t.TempDir()}); err != nil {
		t.Fatal(err)
	}
	var names []string
	s.Start(context.Background(), catalog.NewRules(s.config()), func(d catalog.Delivery) {
		names = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(d.Removed, name) })
		for _, c := range d.Changed {
			names = append(names, c.Cluster.Source.Name)
		}
		s.delivered <- names
	})
	t.Cleanup(s.Stop)
	s.eventually(name)
	return s
}

func (s *shelf) config() *configv1.Config {
	return &configv1.Config{Sources: []*configv1.Source{{Name: "local", ConfigSource: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_PathConfigSource{PathConfigSource: &corev3.PathConfigSource{Path: s.path}},
	}}}}
}

// move puts a file with one cluster in place.
func (s *shelf) move(name string) {
	s.t.Helper()
	if err := os.WriteFile(s.path+".new", []byte("static_resources: {clusters: [{name: "+name+"}]}\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(s.path+".new", s.path); err != nil {
		s.t.Fatal(err)
	}
}

// eventually waits until there is just this cluster.
func (s *shelf) eventually(name string) {
	s.t.Helper()
	deadline := time.NewTimer(20 * time.Second)
	defer deadline.Stop()
	for {
		select {
		case names := <-s.delivered:
			if slices.Equal(names, []string{name}) {
				return
			}
		case <-deadline.C:
			s.t.Fatalf("%s never came", name)
		}
	}
}

// TestAnotherNodeIsAnotherClient: a management server is asked anew as another node.
func TestAnotherNodeIsAnotherClient(t *testing.T) {
	c := &configv1.Config{Sources: []*configv1.Source{{Name: "mesh", ConfigSource: &corev3.ConfigSource{
		ConfigSourceSpecifier: &corev3.ConfigSource_ApiConfigSource{ApiConfigSource: &corev3.ApiConfigSource{
			ApiType:      corev3.ApiConfigSource_AGGREGATED_DELTA_GRPC,
			GrpcServices: []*corev3.GrpcService{{TargetSpecifier: &corev3.GrpcService_GoogleGrpc_{GoogleGrpc: &corev3.GrpcService_GoogleGrpc{TargetUri: "127.0.0.1:1", StatPrefix: "x"}}}},
		}},
	}}}}
	f, err := Open(c, Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Stop()
	before := (*f.open.Load())[0].upstream
	for _, one := range []struct {
		node *corev3.Node
		same bool
	}{{nil, true}, {&corev3.Node{Cluster: "eg"}, false}} {
		c.Sources[0].Node = one.node
		if err := f.Reload(c, catalog.NewRules(c)); err != nil {
			t.Fatal(err)
		}
		now := (*f.open.Load())[0].upstream
		if (now == before) != one.same || now.Status().Node.GetCluster() != one.node.GetCluster() {
			t.Errorf("as %v it is the same client: %v; its node is %v", one.node, now == before, now.Status().Node)
		}
	}
}

// TestAFileMovedInDuringAReloadStays: the reload reads the file before the move,
// and the watcher after it.
func TestAFileMovedInDuringAReloadStays(t *testing.T) {
	s := newShelf(t, "a")
	next, err := s.openAll(s.config())
	if err != nil {
		t.Fatal(err)
	}
	s.move("b")
	s.eventually("b")
	s.mu.Lock()
	s.replace(next, catalog.NewRules(s.config()))
	s.mu.Unlock()
	names := []string{"b"}
	for len(s.delivered) > 0 {
		names = <-s.delivered
	}
	if !slices.Equal(names, []string{"b"}) {
		t.Errorf("there are %v after the reload, want b, which was moved in meanwhile", names)
	}
	s.move("c")
	s.eventually("c")
}
