package send

import (
	"strings"
	"time"

	"hdsd/notify"
)

// alert is an alert of Alertmanager's API v2.
type alert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      *time.Time        `json:"endsAt,omitempty"`
}

func (s *sender) alerts(notices []notify.Notice) []alert {
	list := make([]alert, len(notices))
	for i := range notices {
		n := &notices[i]
		labels := map[string]string{"alertname": alertName(n.Kind), "severity": severity(n.Kind), "hdsd": s.node}
		for name, value := range map[string]string{"cluster": n.Cluster, "version": n.Version, "zone": n.Zone, "endpoint": n.Address, subject(n.Kind): n.Name} {
			if value != "" {
				labels[name] = value
			}
		}
		list[i] = alert{
			Labels: labels, Annotations: map[string]string{"summary": n.Text, "command": n.Command, "runbook": Runbook(n.Kind)}, StartsAt: n.Since.UTC(),
		}
		if !n.Ended.IsZero() {
			ended := n.Ended.UTC()
			list[i].EndsAt = &ended
		}
	}
	return list
}

// delivery is the body of a request to a webhook.
type delivery struct {
	Version       int            `json:"version"`
	SentAt        time.Time      `json:"sentAt"`
	Node          string         `json:"node"`
	Notifications []notification `json:"notifications"`
}

type notification struct {
	ID       string     `json:"id"`
	Kind     string     `json:"kind"`
	Status   string     `json:"status"`
	Severity string     `json:"severity"`
	Cluster  string     `json:"cluster,omitempty"`
	Version  string     `json:"version,omitempty"`
	Zone     string     `json:"zone,omitempty"`
	Address  string     `json:"address,omitempty"`
	Checker  string     `json:"checker,omitempty"`
	Source   string     `json:"source,omitempty"`
	Replica  string     `json:"replica,omitempty"`
	Since    time.Time  `json:"since"`
	EndedAt  *time.Time `json:"endedAt,omitempty"`
	Summary  string     `json:"summary"`
	Command  string     `json:"command"`
	Runbook  string     `json:"runbook"`
}

func (s *sender) delivery(notices []notify.Notice, now time.Time) delivery {
	d := delivery{Version: 1, SentAt: now.UTC(), Node: s.node, Notifications: make([]notification, len(notices))}
	for i := range notices {
		n := &notices[i]
		body := notification{
			ID: n.ID, Kind: string(n.Kind), Status: "firing", Severity: severity(n.Kind), Cluster: n.Cluster, Version: n.Version, Zone: n.Zone, Address: n.Address,
			Since: n.Since.UTC(), Summary: n.Text, Command: n.Command, Runbook: Runbook(n.Kind),
		}
		switch subject(n.Kind) {
		case "checker":
			body.Checker = n.Name
		case "source":
			body.Source = n.Name
		case "replica":
			body.Replica = n.Name
		}
		if !n.Ended.IsZero() {
			ended := n.Ended.UTC()
			body.Status, body.EndedAt = "resolved", &ended
		}
		if n.Kind == notify.Test {
			body.Status = "test"
		}
		d.Notifications[i] = body
	}
	return d
}

// alertName returns the alert name of a kind: HdsdClusterDown for CLUSTER_DOWN.
func alertName(k notify.Kind) string {
	words := strings.Split(string(k), "_")
	for i, word := range words {
		words[i] = word[:1] + strings.ToLower(word[1:])
	}
	return "Hdsd" + strings.Join(words, "")
}

func severity(k notify.Kind) string {
	switch {
	case k == notify.Test:
		return "info"
	case k.Severe():
		return "critical"
	}
	return "warning"
}

// subject returns the noun for the name of a condition.
func subject(k notify.Kind) string {
	switch k {
	case notify.CheckerDoubted, notify.CheckerSilent:
		return "checker"
	case notify.ReplicaLost:
		return "replica"
	}
	return "source"
}

// Runbook returns the heading of the documentation for a kind.
func Runbook(k notify.Kind) string {
	return "docs/operations/notifications.md#" + strings.ToLower(string(k))
}
