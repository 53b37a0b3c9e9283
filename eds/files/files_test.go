package files

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"hdsd/eds"
	"hdsd/health"
	"hdsd/internal/wire"
	"hdsd/publish"
)

// site is a server of assignments and a folder of their files, inside a synctest bubble.
// Every goroutine has to end before the test does.
type site struct {
	*testing.T
	server *eds.Server
	conn   *grpc.ClientConn
	folder string
	keeper *Keeper
	stop   func()
	log    strings.Builder
}

func onSite(t *testing.T, test func(s *site)) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "eds")
	synctest.Test(t, func(t *testing.T) {
		s := &site{T: t, server: eds.NewServer(eds.Options{Identifier: "hdsd-1"}), folder: folder, stop: func() {}}
		listener, transport := bufconn.Listen(1<<20), grpc.NewServer(wire.ServerOption())
		s.server.Register(transport)
		var serving sync.WaitGroup
		serving.Go(func() { _ = transport.Serve(listener) })
		conn, err := grpc.NewClient("passthrough:test", grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
		if err != nil {
			t.Fatal(err)
		}
		s.conn = conn
		defer serving.Wait()
		defer transport.Stop()
		defer s.server.Close()
		defer conn.Close()
		defer func() { s.stop() }()
		test(s)
	})
}

// start keeps the folder up to date with a new Keeper, which replaces the last.
func (s *site) start() {
	s.Helper()
	s.stop()
	keeper, err := Open(Options{Folder: s.folder, Identifier: "hdsd-1", Server: s.conn, Log: zerolog.New(&s.log), Metrics: prometheus.NewRegistry()})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.Context())
	var running sync.WaitGroup
	running.Go(func() { keeper.Run(ctx) })
	s.keeper, s.stop = keeper, func() { cancel(); running.Wait() }
	synctest.Wait()
}

// assignment has one endpoint, whose health a verdict decides.
func assignment(name string, id health.EndpointID) publish.Assignment {
	at := &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{Address: "10.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: 80}}}}
	wire, err := proto.Marshal(&endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
		HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: at}},
	}}}}})
	if err != nil {
		panic(err)
	}
	return publish.Assignment{Name: name, IDs: [][][]health.EndpointID{{{id}}}, Wire: wire}
}

func (s *site) update(u publish.Update) {
	s.server.Update(u)
	synctest.Wait()
}

func (s *site) set(id health.EndpointID, to health.Status) {
	s.server.SetHealth([]publish.Health{{ID: id, Status: to}})
	synctest.Wait()
}

// want checks which files the folder has, and the content of one.
func (s *site) want(name string, status corev3.HealthStatus, all ...string) {
	s.Helper()
	content, err := os.ReadFile(filepath.Join(s.folder, Name(name)))
	var m discoveryv3.DiscoveryResponse
	var a endpointv3.ClusterLoadAssignment
	if err == nil {
		err = proto.Unmarshal(content, &m)
	}
	if err == nil {
		err = m.GetResources()[0].UnmarshalTo(&a)
	}
	if err != nil {
		s.Fatal(err)
	}
	if got := a.GetEndpoints()[0].GetLbEndpoints()[0].GetHealthStatus(); a.GetClusterName() != name || got != status {
		s.Errorf("%s: %q is %v, want %v", Name(name), a.GetClusterName(), got, status)
	}
	entries, err := os.ReadDir(s.folder)
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	if slices.Sort(all); err != nil || !slices.Equal(found, all) {
		s.Errorf("the folder has %q, %v; want %q", found, err, all)
	}
}

// ours counts the files of the coordinator.
func (s *site) ours() (count int) {
	files, err := filepath.Glob(filepath.Join(s.folder, "*"+suffix))
	if err != nil {
		s.Fatal(err)
	}
	for _, file := range files {
		if content, err := os.ReadFile(file); err == nil {
			if _, _, err := decode("hdsd-1", content); err == nil {
				count++
			}
		}
	}
	return count
}

func (s *site) wantWritten(count float64) {
	s.Helper()
	if got := testutil.ToFloat64(s.keeper.written); got != count {
		s.Errorf("%v files were written, want %v", got, count)
	}
	if got := testutil.ToFloat64(s.keeper.count); got != float64(len(s.keeper.folder.versions)) || got != float64(s.ours()) {
		s.Errorf("%v files are counted, %d are known, %d there", got, len(s.keeper.folder.versions), s.ours())
	}
}

func TestFilesTrackAssignments(t *testing.T) {
	onSite(t, func(s *site) {
		s.update(publish.Update{Assignments: []publish.Assignment{assignment("web", 1), assignment("pay/eu", 2)}})
		s.start()
		s.want("web", corev3.HealthStatus_UNKNOWN, "pay%2Feu.pb", "web.pb")
		s.set(1, health.Unhealthy)
		s.want("web", corev3.HealthStatus_UNHEALTHY, "pay%2Feu.pb", "web.pb")
		s.wantWritten(3)
		s.update(publish.Update{Assignments: []publish.Assignment{assignment("new", 3)}, RemovedAssignments: []string{"pay/eu"}})
		s.want("new", corev3.HealthStatus_UNKNOWN, "new.pb", "web.pb")
		s.wantWritten(4)
	})
}

func TestOnlyChangesAreWrittenAfterARestart(t *testing.T) {
	onSite(t, func(s *site) {
		long := strings.Repeat("é", 300)
		s.update(publish.Update{Assignments: []publish.Assignment{assignment("web", 1), assignment("db", 2), assignment("old", 3), assignment(long, 4)}})
		s.start()
		s.stop()
		others := map[string]string{"other.pb": "not ours", "notes.txt": "", ".hidden": "", "empty.pb": "", "old2.pb": "", ".web.pb123": "half"}
		for name, content := range others {
			if err := os.WriteFile(filepath.Join(s.folder, name), []byte(content), 0o600); err != nil {
				s.Fatal(err)
			}
		}
		s.update(publish.Update{RemovedAssignments: []string{"old"}})
		s.set(1, health.Healthy)
		s.start()
		s.want("web", corev3.HealthStatus_HEALTHY, "web.pb", "db.pb", Name(long), "other.pb", "notes.txt", ".hidden", "empty.pb", "old2.pb")
		s.wantWritten(1)
		s.stop()
		if err := os.WriteFile(filepath.Join(s.folder, "web.pb"), []byte("\x0a\x03cut"), 0o600); err != nil {
			s.Fatal(err)
		}
		s.start()
		s.want("web", corev3.HealthStatus_HEALTHY, "web.pb", "db.pb", Name(long), "other.pb", "notes.txt", ".hidden", "empty.pb", "old2.pb")
		s.wantWritten(1)
	})
}

// TestAFolderThatCannotBeWritten is written completely as soon as it can be. That is
// logged once; meanwhile hdsd_files_behind is 1.
func TestAFolderThatCannotBeWritten(t *testing.T) {
	onSite(t, func(s *site) {
		s.update(publish.Update{Assignments: []publish.Assignment{assignment("web", 1), assignment("db", 2)}})
		s.start()
		if err := os.RemoveAll(s.folder); err != nil {
			s.Fatal(err)
		}
		s.set(1, health.Unhealthy)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if n := strings.Count(s.log.String(), "files_behind"); n != 1 || testutil.ToFloat64(s.keeper.lagging) != 1 {
			s.Errorf("told %d times: %s", n, &s.log)
		}
		s.set(1, health.Draining)
		if err := os.Mkdir(s.folder, 0o700); err != nil {
			s.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		s.want("web", corev3.HealthStatus_DRAINING, "db.pb", "web.pb")
		if n := strings.Count(s.log.String(), "files_current"); n != 1 || testutil.ToFloat64(s.keeper.lagging) != 0 {
			s.Errorf("told %d times: %s", n, &s.log)
		}
	})
}

// TestAFileThatCannotBeWritten does not prevent others from being written.
func TestAFileThatCannotBeWritten(t *testing.T) {
	onSite(t, func(s *site) {
		s.start()
		if err := os.Mkdir(filepath.Join(s.folder, "b.pb"), 0o700); err != nil {
			s.Fatal(err)
		}
		s.update(publish.Update{Assignments: []publish.Assignment{assignment("a", 1), assignment("b", 2), assignment("c", 3), assignment("d", 4)}})
		s.want("a", corev3.HealthStatus_UNKNOWN, "a.pb", "b.pb", "c.pb", "d.pb")
		if testutil.ToFloat64(s.keeper.lagging) != 1 || testutil.ToFloat64(s.keeper.written) != 3 {
			s.Errorf("%v files are written: %s", testutil.ToFloat64(s.keeper.written), &s.log)
		}
		if err := os.Remove(filepath.Join(s.folder, "b.pb")); err != nil {
			s.Fatal(err)
		}
		time.Sleep(2 * retry)
		synctest.Wait()
		s.want("b", corev3.HealthStatus_UNKNOWN, "a.pb", "b.pb", "c.pb", "d.pb")
		s.wantWritten(4)
	})
}

func TestAFolderThatCannotBeMade(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "taken")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{taken, filepath.Join(taken, "eds"), "/proc/self"} {
		if _, err := Open(Options{Folder: folder}); err == nil || !strings.Contains(err.Error(), "folder of the files") {
			t.Errorf("%s: %v", folder, err)
		} else if errors.Is(err, fs.ErrNotExist) && folder != "/proc/self" {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
