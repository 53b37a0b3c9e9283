package coordinator

import (
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"

	"hdsd/health"
)

// aside is a cluster with a check that checkers are not sent.
func aside(c *sourceCluster) *sourceCluster {
	again := remade(c)
	again.HealthChecks[0].GetHttpHealthCheck().Method = corev3.RequestMethod_CONNECT
	return again
}

// unreadable is a cluster as a source gives it when something in it is wrong:
// with what could be read, in quarantine.
func unreadable(c *sourceCluster) *sourceCluster {
	again := remade(c)
	again.Rejected, again.HealthChecks = "health_checks[0]: no field intervall", nil
	return again
}

func TestLastValidVersionStaysInUse(t *testing.T) {
	good := web("web", address1, address2)
	l := newSettledLab(t, good)
	l.setClusters(unreadable(good))
	l.truth[address1] = health.Unhealthy
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
	described := l.describe("web")
	if !described.Checked || len(described.Quarantined) != 0 || !strings.Contains(described.RejectedReason, "intervall") {
		t.Errorf("described as %+v", described)
	}
	if l.clusters["web"] == nil {
		t.Error("the cluster is published no more")
	}
	l.setClusters(remade(good))
	if why := l.describe("web").RejectedReason; why != "" {
		t.Errorf("it is put right, and %q", why)
	}
}

func TestRejectedResourcesAreNotPublished(t *testing.T) {
	l := newSettledLab(t, web("web", address1, "db.internal:80", address2, "10.0.0.9:99999"), unreadable(web("bad", address3)))
	var sent []string
	for _, group := range l.message("web").GetEndpoints() {
		for _, e := range group.GetLbEndpoints() {
			sent = append(sent, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
		}
	}
	if len(sent) != 2 {
		t.Errorf("web is published with %v", sent)
	}
	l.truth[address2] = health.Unhealthy
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Healthy)
	l.wantPublished("web", address2, health.Unhealthy)
	if _, ok := l.assignments["bad"]; ok || l.clusters["bad"] != nil {
		t.Error("bad is published")
	}
}

func TestExcludedEndpointsHoldTheirVerdicts(t *testing.T) {
	good := web("web", address1, address2)
	l := newSettledLab(t, good)
	l.truth[address1] = health.Unhealthy
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
	recorded := len(l.transitions)

	l.setClusters(aside(good))
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)
	l.wantPublished("web", address2, health.Healthy)
	if checking := l.checkersOf(address1); len(checking) > 0 {
		t.Errorf("%v still check it", checking)
	}
	verdict := l.queryEndpoint("web", address1).Verdict
	if verdict.Status != health.Unhealthy || !strings.Contains(verdict.Reason, "CONNECT") || !strings.Contains(verdict.Reason, "held") {
		t.Errorf("verdict %+v", verdict)
	}

	// A restart in this state holds them, too.
	l.restart()
	l.serve(aside(good))
	l.join("checker-a", "checker-b", "checker-c")
	l.pass(10 * time.Second)
	l.wantPublished("web", address1, health.Unhealthy)

	l.truth[address1] = health.Healthy
	l.setClusters(remade(good))
	l.wantPublished("web", address1, health.Unhealthy)
	l.pass(20 * time.Second)
	l.wantPublished("web", address1, health.Healthy)
	if got := l.transitions[recorded:]; len(got) != 1 || got[0].From != health.Unhealthy || got[0].To != health.Healthy {
		t.Errorf("transitions %+v", got)
	}

	l.setClusters(aside(good))
	l.setClusters()
	if n := len(l.present()); n != 0 {
		t.Errorf("%d endpoints are known after the cluster is gone", n)
	}
}

// TestExcludedEndpointHoldsItsVerdictHoweverItsAddressIsWritten excludes an endpoint whose address
// can be written in several ways.
func TestExcludedEndpointHoldsItsVerdictHoweverItsAddressIsWritten(t *testing.T) {
	for given, address := range map[string]string{
		"[::192.0.2.1]:80":        "[::192.0.2.1]:80",
		"[::c000:201]:80":         "[::192.0.2.1]:80",
		"[0::0:192.0.2.1]:80":     "[::192.0.2.1]:80",
		"[::ffff:192.0.2.1]:80":   "[::ffff:192.0.2.1]:80",
		"[::FFFF:c000:201]:80":    "[::ffff:192.0.2.1]:80",
		"[2001:DB8:0:0::0:1]:80":  "[2001:db8::1]:80",
		"[2001:db8::192.0.2.1]:1": "[2001:db8::c000:201]:1",
		"192.0.2.1:80":            "192.0.2.1:80",
	} {
		t.Run(given, func(t *testing.T) {
			good := web("web", given)
			l := newSettledLab(t, good)
			l.truth[address] = health.Unhealthy
			l.pass(10 * time.Second)
			l.wantPublished("web", address, health.Unhealthy)
			recorded := len(l.transitions)
			l.setClusters(aside(good))
			l.pass(10 * time.Second)
			l.wantPublished("web", address, health.Unhealthy)
			l.setClusters(remade(good))
			l.pass(10 * time.Second)
			l.wantPublished("web", address, health.Unhealthy)
			if got := l.transitions[recorded:]; len(got) > 0 {
				t.Errorf("transitions %+v", got)
			}
		})
	}
}
