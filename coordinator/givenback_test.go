//go:build !race || soak

package coordinator

import (
	"testing"
	"time"

	configv1 "hdsd/gen/hdsd/config/v1"
)

// TestRestartTakesOverCheckedClustersOnly covers data planes with and without the relay. Checked clusters are
// not given back, although checkers are late.
func TestRestartTakesOverCheckedClustersOnly(t *testing.T) {
	l := newLab(t)
	inA := &configv1.CheckerSelector{Localities: []*configv1.LocalitySelector{{Region: "eu", Zone: "a"}}}
	l.rules.Policies = []*configv1.Policy{{ClusterNameGlob: "far", Checkers: inA}}
	clusters := []*sourceCluster{web("far", address1), web("web", address2)}
	want := func(when string, given bool) {
		t.Helper()
		for name, keeps := range map[string]bool{"far": given, "web": false} {
			if got := len(l.clusters[name].GetHealthChecks()) > 0; got != keeps {
				t.Errorf("%s: %s keeps its health checks: %t, want %t", when, name, got, keeps)
			}
			if _, taken := l.core.publisher.takenOver.Load(name); taken == keeps {
				t.Errorf("%s: to the relay, %s is taken over: %t, want %t", when, name, taken, !keeps)
			}
		}
	}
	l.serve(clusters...)
	l.join("ca", "cb", "cc")
	l.pass(settle + time.Minute)
	want("at first", false)
	l.lose("ca")
	l.pass(6 * time.Minute)
	want("no checker is able to check one", true)

	l.restartAs(clusters)
	want("at a restart", true)
	l.pass(settle / 2)
	l.join("cb", "cc")
	l.pass(settle + 10*time.Minute)
	want("long after a restart", true)

	l.restartAs(clusters, "ca", "cb", "cc")
	want("with its checker, at first", true)
	l.pass(settle + time.Minute)
	want("with its checker", false)

	l.restartAs(clusters)
	want("without checkers", false)
	l.pass(settle / 2)
	l.join("ca", "cb", "cc")
	l.pass(settle + 10*time.Minute)
	want("with late checkers", false)
}

// TestRestartKeepsATakeover covers a cluster that got an endpoint after it was taken over. Data planes keep
// their cluster over a restart although that endpoint never had a verdict: another one would be warmed anew.
func TestRestartKeepsATakeover(t *testing.T) {
	l := newLab(t)
	l.serve(web("web", address1))
	l.join("ca", "cb", "cc")
	l.pass(settle + time.Minute)
	checks := func(when string) {
		t.Helper()
		if len(l.clusters["web"].GetHealthChecks()) > 0 {
			t.Errorf("%s: data planes check it themselves", when)
		}
	}
	checks("taken over")
	clusters := []*sourceCluster{web("web", address1, address2)}
	l.setClusters(clusters...)
	checks("with a new endpoint")
	l.restartAs(clusters)
	checks("after a restart")
}
