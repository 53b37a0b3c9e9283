package alone

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"

	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// Step is something that happens to a case's cluster, or a look at what both data
// planes do.
type Step func(*Play)

// Set makes an upstream behave. It starts it, if it is not there yet.
func Set(i int, b upstream.Behaviour) Step {
	return func(p *Play) {
		p.t.Helper()
		p.up(i)
		p.set(i, b)
	}
}

// Ready waits until both data planes send traffic to all endpoints but those that are
// down, and hdsd has a verdict on each that it checks, so that the data plane behind it
// checks nothing itself.
func Ready(down ...int) Step {
	return func(p *Play) {
		p.t.Helper()
		wanted := p.present()
		p.await("the endpoints", func(_ Plane, hosts map[string]envoy.Host) bool {
			for _, i := range wanted {
				if _, there := hosts[p.up(i).Addr()]; !there {
					return false
				}
			}
			return len(hosts) == len(wanted)
		})
		if checked := p.rig.Hdsd.Clusters()[p.name].Checked; checked {
			envoy.Eventually(p.t, fleet.Patience, "verdicts on "+p.name, func() bool {
				for _, e := range p.rig.Hdsd.Endpoints(p.name) {
					if e.Health == "UNKNOWN" && !strings.HasPrefix(e.Reason, "not checked") {
						return false
					}
				}
				return true
			})
			if p.c.verdict(p.rig.Version) != Left {
				taken(p)
			}
		}
		Down(down...)(p)
		Up(others(wanted, down)...)(p)
	}
}

// taken waits until the data plane behind hdsd checks nothing itself.
func taken(p *Play) {
	p.t.Helper()
	Await(Through, "to leave checks to hdsd", func(p *Play) bool { return !p.keepsChecks() })(p)
}

// Down waits until neither data plane sends traffic to endpoints.
func Down(endpoints ...int) Step {
	return func(p *Play) {
		p.t.Helper()
		p.await(fmt.Sprintf("%v to be down", endpoints), func(_ Plane, hosts map[string]envoy.Host) bool {
			for _, address := range p.addresses(endpoints) {
				if !hosts[address].Failed() {
					return false
				}
			}
			return true
		})
	}
}

// Up waits until both data planes may send traffic to endpoints.
func Up(endpoints ...int) Step {
	return func(p *Play) {
		p.t.Helper()
		p.await(fmt.Sprintf("%v to be up", endpoints), func(_ Plane, hosts map[string]envoy.Host) bool {
			for _, address := range p.addresses(endpoints) {
				if host, there := hosts[address]; !there || host.Failed() {
					return false
				}
			}
			return true
		})
	}
}

// Gone waits until neither data plane has endpoints.
func Gone(endpoints ...int) Step {
	return func(p *Play) {
		p.t.Helper()
		p.await(fmt.Sprintf("%v to be gone", endpoints), func(_ Plane, hosts map[string]envoy.Host) bool {
			for _, address := range p.addresses(endpoints) {
				if _, there := hosts[address]; there {
					return false
				}
			}
			return true
		})
	}
}

// Send sends n requests through each data plane.
func Send(n int) Step {
	return func(p *Play) {
		record := newRecord(fmt.Sprintf("%d requests", n), false)
		for range n {
			for plane := range p.rig.Planes {
				endpoint, failure := p.send(Plane(plane), nil)
				record.add(Plane(plane), endpoint, failure)
			}
		}
		p.records = append(p.records, record)
	}
}

// During sends requests through both data planes while steps are played, and n more.
func During(n int, steps ...Step) Step {
	return func(p *Play) {
		p.t.Helper()
		record := newRecord("meanwhile", true)
		p.traffic(&record, n, steps)
		p.records = append(p.records, record)
	}
}

// Failing is During where an endpoint begins to fail.
func Failing(n int, steps ...Step) Step {
	return func(p *Play) {
		p.t.Helper()
		During(n, steps...)(p)
		p.records[len(p.records)-1].Failing = true
	}
}

// Change gives both data planes another version of the cluster. An empty one is the case's.
// Cases that play at the same time share the step.
func Change(cluster, assignment string) Step {
	return func(p *Play) {
		p.t.Helper()
		p.put(Resource{cmp.Or(cluster, p.c.Cluster), assignment})
	}
}

// Eventually waits until a condition holds at both data planes.
func Eventually(what string, holds func(*Play, Plane) bool) Step {
	return func(p *Play) {
		p.t.Helper()
		p.await(what, func(plane Plane, _ map[string]envoy.Host) bool { return holds(p, plane) })
	}
}

// Await waits until a condition holds at one data plane.
func Await(plane Plane, what string, holds func(*Play) bool) Step {
	return func(p *Play) {
		p.t.Helper()
		envoy.Eventually(p.t, fleet.Patience, plane.String()+": "+what, func() bool { return holds(p) })
	}
}

// Note records something else that both data planes did.
func Note(label string, look func(*Play, Plane) string) Step {
	return func(p *Play) {
		p.t.Helper()
		record := Record{Label: label}
		for plane := range p.rig.Planes {
			record.Noted[plane] = look(p, Plane(plane))
		}
		p.records = append(p.records, record)
	}
}

// session is the header that asks for an endpoint.
func session(address string) http.Header {
	return http.Header{"X-Session": {base64.StdEncoding.EncodeToString([]byte(address))}}
}

// connections is how many connections a data plane has for requests.
func (p *Play) connections(plane Plane) uint64 { return p.stat(plane, "upstream_cx_active") }

// stat is a statistic of the cluster at a data plane.
func (p *Play) stat(plane Plane, name string) uint64 {
	p.t.Helper()
	name = "cluster." + p.name + "." + name
	return p.rig.Planes[plane].Stats(p.t, "^"+name+"$")[name]
}
