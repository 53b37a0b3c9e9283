package coordinator

import (
	"context"
	"crypto/tls"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"

	"hdsd/api"
	"hdsd/config"
	"hdsd/coordinator/attention"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/internal/printable"
	"hdsd/internal/reason"
	"hdsd/notify"
	"hdsd/notify/send"
	"hdsd/source"
	"hdsd/store"
)

// receivers returns the receivers of notifications in a configuration.
func receivers(c *configv1.Config) []send.Receiver {
	list := make([]send.Receiver, len(c.GetNotify()))
	for i, n := range c.GetNotify() {
		r := send.Receiver{Name: n.GetName(), Filter: notify.Filter{Kinds: map[notify.Kind]bool{}, MinDuration: n.GetMinDuration().AsDuration()}}
		for _, kind := range n.GetKinds() {
			r.Filter.Kinds[notify.Kind(kind.String())] = true
		}
		if glob := n.GetClusterNameGlob(); glob != "" {
			r.Filter.Cluster = func(name string) bool { return source.Match(glob, name) }
		}
		if a := n.GetAlertmanager(); a != nil {
			r.Target = send.Target{Type: send.Alertmanager, URL: a.GetUrl()}
		} else {
			r.Target = send.Target{Type: send.Webhook, URL: n.GetWebhook().GetUrl(), SecretFile: n.GetWebhook().GetSecretFile()}
		}
		r.Target.User, r.Target.PasswordFile, r.Target.TokenFile = n.GetBasicAuth().GetUsername(), n.GetBasicAuth().GetPasswordFile(), n.GetTokenFile()
		r.Target.TLS = send.TLS{CA: n.GetTls().GetCaFile(), Chain: n.GetTls().GetCertificateChainFile(), Key: n.GetTls().GetPrivateKeyFile()}
		list[i] = r
	}
	return list
}

// openHub makes the hub of notifications.
func (c *Coordinator) openHub() {
	c.hub = send.New(send.Options{
		Node: c.started.GetNodeId(), Dir: c.started.GetDataDir(), Log: c.log, Registerer: c.registry, Look: c.externalTroubles,
		ReadSecret: config.ReadSecret,
		ReadTLS:    func(files send.TLS) (*tls.Config, error) { return config.ReceiverTLS(files.CA, files.Chain, files.Key) },
	})
	c.hub.Set(receivers(c.started))
	c.core.alarms.follow(c.started.GetMetrics())
	c.core.alarms.notify, c.core.alarms.onComplete = c.hub.Post, c.hub.Confirm
}

// externalTroubles returns the troubles outside of the core.
func (c *Coordinator) externalTroubles() (found []notify.Condition) {
	for _, s := range c.feed.Broken() {
		found = append(found, notify.Condition{
			Key: notify.Key{Kind: notify.SourceBroken, Name: s.Name}, Since: s.Since, Command: "hdsd source list", Text: attention.BrokenText(s.Name, s.Problem),
		})
	}
	for _, s := range c.feed.Held() {
		found = append(found, notify.Condition{
			Key: notify.Key{Kind: notify.ShrinkageHeld, Name: s.Name}, Since: s.Held.Since, Command: "hdsd source list",
			Text: "what source " + s.Name + " took away is held until " + s.Held.AcceptsAt.UTC().Format(time.RFC3339),
		})
	}
	if refusing := c.servers.refusals.named(); refusing.Reason != "" {
		found = append(found, notify.Condition{
			Key: notify.Key{Kind: notify.DataPlanesRefusing}, Since: refusing.Since, Command: attention.RefusingCommand, Text: refusing.Reason,
		})
	}
	replication := c.replicas.troubles()
	found = append(found, replicaTroubles(&replication)...)
	if cause := c.query.HistoryFailing(); cause != "" {
		failing := notify.Condition{
			Key: notify.Key{Kind: notify.HistoryFailing}, Command: "hdsd history --newest-first --limit 20",
			Text: "history is not being written: " + cause,
		}
		if since := c.ready.failing.Load(); since != nil {
			failing.Since = *since
		}
		found = append(found, failing)
	}
	return found
}

// replicaTroubles returns the troubles of replicas.
func replicaTroubles(r *attention.Replication) (found []notify.Condition) {
	add := func(kind notify.Kind, n *attention.Named, text string) {
		found = append(found, notify.Condition{
			Key: notify.Key{Kind: kind, Name: n.Name}, Since: n.Since, Command: attention.ReplicasCommand, Text: text,
		})
	}
	if n := &r.NoLeader; n.Reason != "" {
		add(notify.NoLeader, n, attention.NoLeaderText(n.Reason))
	}
	if n := &r.EngineLost; n.Reason != "" {
		add(notify.EngineLost, n, attention.EngineLostText(n.Reason))
	}
	for i := range r.Lost {
		n := &r.Lost[i]
		add(notify.ReplicaLost, n, attention.ReplicaLostText(n.Name, n.Reason))
	}
	return found
}

// Receivers implements api.Controller.
func (c *control) Receivers() []api.Receiver {
	states := c.hub.States()
	shown := make([]api.Receiver, len(states))
	for i := range states {
		s := &states[i]
		shown[i] = api.Receiver{
			Name: s.Name, Type: s.Type, Open: s.Open, Queued: s.Queued, LastSuccess: s.LastSuccess, LastError: s.LastError,
			FailingSince: s.FailingSince, Dropped: s.Dropped,
		}
		for j := range s.Dead {
			d := &s.Dead[j]
			shown[i].DeadLetters = append(shown[i].DeadLetters, api.DeadLetter{
				Time: d.Time, Kind: string(d.Notice.Kind), Summary: d.Notice.Text, Resolved: !d.Notice.Ended.IsZero(), Error: d.Error,
			})
		}
	}
	return shown
}

// NotifyTest implements api.Controller.
func (c *control) NotifyTest(ctx context.Context, name, author string) (ok bool, answer string, err error) {
	answer, known, failure := c.hub.Test(ctx, name)
	if !known {
		return false, "", reason.New(codes.NotFound, reason.UnknownReceiver, fmt.Sprintf("no receiver %q is configured: 'hdsd notify list' shows them", name))
	}
	if failure != nil {
		answer = failure.Error()
	}
	answer = printable.Text(answer)
	err = c.carryOut(ctx, "the test was sent, but the audit does not have it", nil, func(now time.Time) error {
		c.audit(ctx, now, store.AuditEntry{Action: "NotifyTest", Target: name, Author: author, After: answer})
		return nil
	})
	return failure == nil, answer, err
}
