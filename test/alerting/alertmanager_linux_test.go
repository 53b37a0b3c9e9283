package alerting

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	hdsdv1 "hdsd/gen/hdsd/v1"
	"hdsd/test/debian"
)

// alertmanager is a real one.
type alertmanager struct {
	testing.TB
	url string
}

func newAlertmanager(t testing.TB) *alertmanager {
	t.Helper()
	const binary = "/usr/bin/prometheus-alertmanager"
	root, address := debian.Unpacked(t, binary, "prometheus-alertmanager"), freeAddress(t)
	dir, err := os.MkdirTemp(root, "run-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.WriteFile(filepath.Join(dir, "alertmanager.yml"), []byte("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	inside := "/" + filepath.Base(dir)
	command := exec.Command(binary, "--config.file="+inside+"/alertmanager.yml", "--storage.path="+inside, "--web.listen-address="+address, "--cluster.listen-address=")
	command.Path, command.Err, command.Dir = binary, nil, "/"
	command.Stdout, command.Stderr = out, out
	command.SysProcAttr = &syscall.SysProcAttr{Chroot: root} // it reads its templates below /usr/share
	if os.Getuid() != 0 {
		command.SysProcAttr.Cloneflags = syscall.CLONE_NEWUSER
		command.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		command.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGTERM)
		_ = command.Wait() // it was told to end
		if t.Failed() {
			text, _ := os.ReadFile(out.Name())
			t.Logf("Alertmanager says:\n%s", text)
		}
		out.Close()
	})
	a := &alertmanager{t, "http://" + address}
	eventually(t, "Alertmanager", func() bool { return fetch(t, a.url+"/-/ready") != "" })
	return a
}

// shown is an alert as Alertmanager shows it.
type shown struct {
	Labels      map[string]string
	Annotations map[string]string
	StartsAt    time.Time
	EndsAt      time.Time
}

// alerts are those that are active, by name.
func (a *alertmanager) alerts() map[string]shown {
	a.Helper()
	var all []shown
	text := fetch(a, a.url+"/api/v2/alerts")
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		a.Fatalf("%q: %v", text, err)
	}
	found := map[string]shown{}
	for _, each := range all {
		found[each.Labels["alertname"]] = each
	}
	return found
}

// TestARealAlertmanager shows what is down, with labels and what to do, and no longer when it
// is back; it takes tests.
func TestARealAlertmanager(t *testing.T) {
	t.Parallel()
	a := newAlertmanager(t)
	s := newSite(t, plain+fmt.Sprintf("notify: [{name: oncall, alertmanager: {url: %q}}]\n", a.url), "a", "b", "c")
	eventually(t, "three votes", func() bool { return strings.Contains(s.scrape(t), `hdsd_endpoints_by_voters{voters="3+"} 1`) })
	eventually(t, "no alert", func() bool { return len(a.alerts()) == 0 })
	s.status.Store(http.StatusServiceUnavailable)
	eventually(t, "two alerts", func() bool { return len(a.alerts()) == 2 })
	all := a.alerts()
	if down := all["HdsdClusterDown"]; down.Labels["cluster"] != "web" || down.Labels["severity"] != "critical" ||
		down.Annotations["command"] != "hdsd describe cluster web" || !strings.Contains(down.Annotations["summary"], "cluster web: 1 of 1 endpoint down") {
		t.Errorf("%+v", all)
	}
	if down := all["HdsdEndpointDown"]; down.Labels["endpoint"] != s.upstream || down.Labels["cluster"] != "web" || time.Until(down.EndsAt) < 2*time.Minute {
		t.Errorf("%+v", all)
	}
	connection, err := grpc.NewClient(s.GRPCAddress(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	answer, err := hdsdv1.NewControlClient(connection).NotifyTest(t.Context(), &hdsdv1.NotifyTestRequest{Name: "oncall"})
	if err != nil || !answer.GetOk() || a.alerts()["HdsdTest"].Labels["severity"] != "info" {
		t.Errorf("%v, %v, %+v", answer, err, a.alerts())
	}
	s.status.Store(http.StatusOK)
	eventually(t, "no alert but the test", func() bool { return len(a.alerts()) == 1 })
}

// BenchmarkAlertmanager measures from when the only endpoint of a cluster fails to when a real
// Alertmanager shows that, and the part of it after hdsd's verdict.
func BenchmarkAlertmanager(b *testing.B) {
	a := newAlertmanager(b)
	s := newSite(b, plain+fmt.Sprintf("notify: [{name: oncall, kinds: [CLUSTER_DOWN], alertmanager: {url: %q}}]\n", a.url), "a", "b", "c")
	eventually(b, "three votes", func() bool { return strings.Contains(s.scrape(b), `hdsd_endpoints_by_voters{voters="3+"} 1`) })
	var whole, own []time.Duration
	for b.Loop() {
		began := time.Now()
		s.status.Store(http.StatusServiceUnavailable)
		var down shown
		eventually(b, "the alert", func() bool { down = a.alerts()["HdsdClusterDown"]; return down.Labels != nil })
		whole, own = append(whole, time.Since(began)), append(own, time.Since(down.StartsAt))
		s.status.Store(http.StatusOK)
		eventually(b, "its end", func() bool { return len(a.alerts()) == 0 })
	}
	for name, all := range map[string][]time.Duration{"whole": whole, "own": own} {
		slices.Sort(all)
		for quantile, at := range map[string]int{"p50": 50, "p99": 99, "max": 100} {
			b.ReportMetric(float64(all[(len(all)-1)*at/100].Microseconds())/1000, name+"-"+quantile+"-ms")
		}
	}
}
