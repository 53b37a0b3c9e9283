package coordinator_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	hdsdv1 "hdsd/gen/hdsd/v1"
)

// hook is a webhook that answers as it is told.
type hook struct {
	*httptest.Server
	code atomic.Int32
	mu   sync.Mutex
	got  []string // "status kind cluster address"
}

func newHook(t *testing.T) *hook {
	h := &hook{}
	h.code.Store(http.StatusOK)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var d struct {
			Notifications []struct{ Status, Kind, Cluster, Address, Summary string }
		}
		if err != nil || json.Unmarshal(body, &d) != nil {
			t.Errorf("%q, %v", body, err)
		}
		code := int(h.code.Load())
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, n := range d.Notifications {
			if code == http.StatusOK {
				h.got = append(h.got, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", n.Status, n.Kind, n.Cluster, n.Address)))
			}
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(h.Close)
	return h
}

// forget forgets what was said.
func (h *hook) forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.got = nil
}

// has reports whether each of these was said.
func (h *hook) has(all ...string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !slices.ContainsFunc(all, func(want string) bool { return !slices.Contains(h.got, want) })
}

// TestReceiversAreNotified covers notifications of outages and their ends, also over a restart, the mark of a
// test, and the failures that operators see. It moves hdsd_notifications_open, hdsd_notifications_queued,
// hdsd_notifications_sent_total, hdsd_notifications_failed_total, hdsd_notifications_dropped_total,
// hdsd_notify_receivers_failing and hdsd_notification_delay_seconds.
func TestReceiversAreNotified(t *testing.T) {
	t.Parallel()
	h := newHook(t)
	p := newPlayground(t)
	configured := playgroundText + "notify: [{name: oncall, webhook: {url: " + h.URL + "}}]\n"
	clusters := static("web", p.address) + static("dark", p.address)
	p.site = newSite(t, p.dir, configured, clusters)
	p.ready()
	p.eventually("no checkers", func() bool { return h.has("firing NO_CHECKERS") })
	p.check()
	p.eventually("a healthy endpoint", func() bool {
		return p.healthOf("web", p.address) == "HEALTHY" && p.healthOf("dark", p.address) == "HEALTHY" && h.has("resolved NO_CHECKERS")
	})
	p.status.Store(http.StatusServiceUnavailable)
	p.eventually("the cluster to be down", func() bool { return h.has("firing CLUSTER_DOWN web", "firing ENDPOINT_DOWN web "+p.address) })
	p.eventually("metrics", func() bool {
		s := p.scrape()
		return s.sum("hdsd_notifications_open") == 4 && s.sum("hdsd_notifications_sent_total") >= 6 && s.sum("hdsd_notification_delay_seconds") >= 5
	})

	control := hdsdv1.NewControlClient(p.dial())
	test := func() *hdsdv1.NotifyTestResponse {
		t.Helper()
		answer, err := control.NotifyTest(t.Context(), &hdsdv1.NotifyTestRequest{Name: "oncall", Author: "ann"})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if answer := test(); !answer.GetOk() || answer.GetAnswer() != "200 OK" || !h.has("test TEST") {
		t.Errorf("%v", answer)
	}
	if audit, err := control.ListAudit(t.Context(), &hdsdv1.ListAuditRequest{}); err != nil || len(audit.GetEntries()) != 1 || audit.GetEntries()[0].GetAction() != "NotifyTest" {
		t.Errorf("the audit has %v, %v", audit, err)
	}
	if _, err := control.NotifyTest(t.Context(), &hdsdv1.NotifyTestRequest{Name: "nobody"}); err == nil || !strings.Contains(err.Error(), "no receiver") {
		t.Errorf("%v", err)
	}
	h.code.Store(http.StatusBadGateway)
	if answer := test(); answer.GetOk() || !strings.Contains(answer.GetAnswer(), "502") {
		t.Errorf("%v", answer)
	}
	p.status.Store(http.StatusOK)
	p.eventually("the receiver to fail", func() bool {
		s := p.scrape()
		return s.sum("hdsd_notify_receivers_failing") == 1 && s.sum("hdsd_notifications_queued") >= 4 && s.sum("hdsd_notifications_failed_total") > 0
	})
	var listed struct {
		Receivers []struct {
			Name, LastError string
			Queued          int
		}
	}
	if code, text := p.get("/v1/notify"); code != http.StatusOK || json.Unmarshal([]byte(text), &listed) != nil || len(listed.Receivers) != 1 || listed.Receivers[0].Name != "oncall" || !strings.Contains(listed.Receivers[0].LastError, "502") {
		t.Errorf("%d %s", code, text)
	}
	h.code.Store(http.StatusBadRequest)
	p.eventually("dead letters", func() bool { return p.scrape().sum("hdsd_notifications_dropped_total") >= 4 })
	h.code.Store(http.StatusOK)
	p.status.Store(http.StatusServiceUnavailable)
	p.eventually("the receiver to be told again", func() bool { return p.scrape().sum("hdsd_notifications_open") == 4 })

	h.forget()
	p.leave()
	p.eventually("no checkers again", func() bool { return h.has("firing NO_CHECKERS") })
	p.stopped()
	h.forget()
	p.status.Store(http.StatusOK)
	p.site = newSite(t, p.dir, configured, static("web", p.address))
	p.ready()
	p.eventually("the end of what is gone", func() bool {
		return h.has("resolved CLUSTER_DOWN dark", "resolved ENDPOINT_DOWN dark "+p.address)
	})
	if h.has("firing CLUSTER_DOWN web") || h.has("resolved CLUSTER_DOWN web") || h.has("firing NO_CHECKERS") || h.has("resolved NO_CHECKERS") {
		t.Errorf("a restart says %q", h.got)
	}
	p.checkers = nil
	p.check()
	p.eventually("the end of all", func() bool {
		return h.has("resolved CLUSTER_DOWN web", "resolved ENDPOINT_DOWN web "+p.address, "resolved NO_CHECKERS")
	})

	if _, err := p.Reload(configuration(t, p.dir, playgroundText, static("web", p.address))); err != nil {
		t.Fatal(err)
	}
	if _, text := p.get("/v1/notify"); strings.Contains(text, "oncall") {
		t.Errorf("after a reload without it: %s", text)
	}
}

// TestReceiverCredentials covers a token and a password from the configuration, over TLS with an authority of
// its own.
func TestReceiverCredentials(t *testing.T) {
	t.Parallel()
	var by atomic.Value
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { by.Store(r.Header.Get("Authorization")) }))
	defer server.Close()
	dir := t.TempDir()
	move(t, dir, "ca.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
	move(t, dir, "secret", "hunter2\n")
	s := newSite(t, dir, quick+fmt.Sprintf(`notify:
- {name: token, webhook: {url: %q}, token_file: secret, tls: {ca_file: ca.pem}}
- {name: password, alertmanager: {url: %q}, basic_auth: {username: ann, password_file: secret}, tls: {ca_file: ca.pem}}
- {name: stranger, webhook: {url: %q}}
`, server.URL, server.URL, server.URL), static("web", "127.0.0.1:1"))
	s.ready()
	control := hdsdv1.NewControlClient(s.dial())
	for name, want := range map[string]string{"token": "Bearer hunter2", "password": "Basic " + base64.StdEncoding.EncodeToString([]byte("ann:hunter2"))} {
		s.eventually("a test of "+name, func() bool {
			answer, err := control.NotifyTest(t.Context(), &hdsdv1.NotifyTestRequest{Name: name})
			return err == nil && answer.GetOk() && by.Load() == want // between these, others are sent
		})
	}
	if answer, err := control.NotifyTest(t.Context(), &hdsdv1.NotifyTestRequest{Name: "stranger"}); err != nil || answer.GetOk() || !strings.Contains(answer.GetAnswer(), "certificate") {
		t.Errorf("%v, %v", answer, err)
	}
}
