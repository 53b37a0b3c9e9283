package alone

import (
	"cmp"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"hdsd/test/authority"
	"hdsd/test/envoy"
	"hdsd/test/fleet"
	"hdsd/test/upstream"
)

// Play is a case while it is played.
type Play struct {
	t       *testing.T
	rig     *Rig
	c       *Case
	name    string // of the cluster
	given   Resource
	ups     []*upstream.Server
	options upstream.Options // of the upstreams
	trusted string           // the authority of their certificates, as PEM
	records []Record
}

// Record is what both data planes did at a step.
type Record struct {
	Label        string
	Sent, Failed [2]int            // requests
	To           [2]map[string]int // requests by endpoint: its number, or "none"
	Moving       bool              // endpoints changed meanwhile: only failed requests compare
	Failing      bool              // an endpoint fails meanwhile: until that is known, requests may fail
	Noted        [2]string         // what else compares
	Failures     [2]map[string]int // the answers to failed requests, which do not compare
}

func (r Record) String() string {
	if r.Sent[Alone] == 0 {
		return fmt.Sprintf("%s: alone %s, through hdsd %s", r.Label, r.Noted[Alone], r.Noted[Through])
	}
	return fmt.Sprintf("%s: failed: alone %d of %d, through hdsd %d of %d; by endpoint: alone %v, through hdsd %v; failures: alone %v, through hdsd %v", r.Label,
		r.Failed[Alone], r.Sent[Alone], r.Failed[Through], r.Sent[Through], r.To[Alone], r.To[Through], r.Failures[Alone], r.Failures[Through])
}

// endpointMark matches what stands for an upstream in a cluster.
var endpointMark = regexp.MustCompile(`[$@#][0-9]`)

func newPlay(t *testing.T, r *Rig, c *Case) *Play {
	t.Helper()
	p := &Play{t: t, rig: r, c: c, name: strings.ReplaceAll(c.Name, " ", "-"), options: c.Upstream}
	if c.Upstream.Protocol == upstream.HTTPS {
		issuer := authority.New(t, "authority")
		p.trusted = issuer.PEM()
		if p.options.TLS == nil {
			p.options.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		p.options.TLS = p.options.TLS.Clone()
		p.options.TLS.Certificates = []tls.Certificate{issuer.Issue(t, "upstream").Certificate}
	}
	p.put(Resource{c.Cluster, c.Assignment})
	return p
}

// put gives both data planes a version of the cluster.
func (p *Play) put(given Resource) {
	p.t.Helper()
	p.given = Resource{p.expand(given.Cluster), p.expand(given.Assignment)}
	p.rig.Put(p.t, p.name, p.given)
}

// expand puts addresses in the place of marks, and starts the upstreams that are
// not there yet.
func (p *Play) expand(text string) string {
	text = strings.ReplaceAll(text, "$name", p.name)
	text = endpointMark.ReplaceAllStringFunc(text, func(mark string) string {
		if mark[0] == '#' {
			return fmt.Sprint(p.up(int(mark[1] - '0')).Port())
		}
		address := fmt.Sprintf("{socket_address: {address: 127.0.0.1, port_value: %d}}", p.up(int(mark[1]-'0')).Port())
		if mark[0] == '$' {
			return "{endpoint: {address: " + address + "}}"
		}
		return address
	})
	return strings.ReplaceAll(text, "$ca", strings.ReplaceAll(p.trusted, "\n", `\n`))
}

// up is an upstream.
func (p *Play) up(i int) *upstream.Server {
	p.t.Helper()
	for len(p.ups) <= i {
		s := fleet.Upstreams(p.t, 1, p.options)[0]
		p.ups = append(p.ups, s)
		b := p.options.Behaviour
		if b.Kind == upstream.KindAnswer && b.Raw == nil {
			b = upstream.Healthy()
		}
		p.set(len(p.ups)-1, b)
	}
	return p.ups[i]
}

// set makes an upstream behave. Its answers say which one it is.
func (p *Play) set(i int, b upstream.Behaviour) {
	p.t.Helper()
	header := http.Header{"X-Endpoint": {strconv.Itoa(i)}}
	maps.Copy(header, b.Header)
	b.Header = header
	if err := p.ups[i].Set(b); err != nil {
		p.t.Fatal(err)
	}
}

// hosts is what a data plane thinks of the cluster's endpoints.
func (p *Play) hosts(plane Plane) map[string]envoy.Host {
	p.t.Helper()
	return p.rig.Planes[plane].Clusters(p.t)[p.name]
}

// await waits until a condition holds at both data planes.
func (p *Play) await(what string, holds func(Plane, map[string]envoy.Host) bool) {
	p.t.Helper()
	for plane := range p.rig.Planes {
		if !envoy.Await(fleet.Patience, func() bool { return holds(Plane(plane), p.hosts(Plane(plane))) }) {
			p.t.Fatalf("%s: waited in vain for %s: it has %+v; hdsd says %+v", Plane(plane), what, p.hosts(Plane(plane)), p.rig.Hdsd.Endpoints(p.name))
		}
	}
}

var client = http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 100}}

// send sends one request through a data plane. It returns the endpoint that answers, or "none", and
// why the request has failed: it has unless the answer is 200.
func (p *Play) send(plane Plane, header http.Header) (endpoint, failure string) {
	request, err := http.NewRequest(http.MethodGet, "http://"+p.rig.Listen[plane]+"/", nil)
	if err != nil {
		return "none", err.Error()
	}
	maps.Copy(request.Header, header)
	request.Header.Set("x-cluster", p.name)
	response, err := client.Do(request)
	if err != nil {
		return "none", err.Error()
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body) // only the status counts
	if response.StatusCode != http.StatusOK {
		failure = fmt.Sprintf("%s: %.100s", response.Status, body)
	}
	return cmp.Or(response.Header.Get("X-Endpoint"), "none"), failure
}

func newRecord(label string, moving bool) Record {
	return Record{Label: label, Moving: moving, To: [2]map[string]int{{}, {}}, Failures: [2]map[string]int{{}, {}}}
}

func (r *Record) add(plane Plane, endpoint, failure string) {
	r.Sent[plane]++
	r.To[plane][endpoint]++
	if failure != "" {
		r.Failed[plane]++
		r.Failures[plane][failure]++
	}
}

// traffic sends requests through both data planes, one after the other, while steps
// are played, and then as many more.
func (p *Play) traffic(record *Record, more int, steps []Step) {
	var running sync.WaitGroup
	finished := make(chan struct{})
	var once sync.Once
	finish := func() { once.Do(func() { close(finished) }) }
	defer running.Wait()
	defer finish() // also where a step ends the test
	var mu sync.Mutex
	for plane := range p.rig.Planes {
		running.Go(func() {
			pace := time.NewTicker(10 * time.Millisecond)
			defer pace.Stop()
			for left := more; left > 0; {
				<-pace.C
				endpoint, failure := p.send(Plane(plane), nil)
				mu.Lock()
				record.add(Plane(plane), endpoint, failure)
				mu.Unlock()
				select {
				case <-finished:
					left--
				default:
				}
			}
		})
	}
	for _, step := range steps {
		step(p)
	}
}

// allowance is how many more requests may fail through hdsd than alone until a failure is
// known there. Checkers report every quarter of a second, and one request in ten
// milliseconds is sent at most: the rest is for a busy machine.
const allowance = 300

// differences lists how the data planes differ.
func (p *Play) differences() (found []string) {
	for _, r := range p.records {
		if r.Noted[Alone] != r.Noted[Through] {
			found = append(found, r.String())
			continue
		}
		if r.Moving {
			if r.Failed[Alone] == 0 && r.Failed[Through] > 0 && !r.Failing || r.Failed[Through] > r.Failed[Alone]+allowance {
				found = append(found, r.String())
			}
			continue
		}
		far := func(a, b int) bool { return max(a-b, b-a) > 2+r.Sent[Alone]/10 }
		differs := far(r.Failed[Alone], r.Failed[Through])
		for endpoint := range merged(r.To) {
			differs = differs || far(r.To[Alone][endpoint], r.To[Through][endpoint])
		}
		if differs {
			found = append(found, r.String())
		}
	}
	return found
}

func merged(both [2]map[string]int) map[string]bool {
	all := map[string]bool{}
	for _, one := range both {
		for endpoint := range one {
			all[endpoint] = true
		}
	}
	return all
}

// addresses are those of upstreams.
func (p *Play) addresses(indices []int) (all []string) {
	for _, i := range indices {
		all = append(all, p.up(i).Addr())
	}
	return all
}

// present are the numbers of the upstreams that the cluster has as endpoints.
func (p *Play) present() (all []int) {
	for i, s := range p.ups {
		if regexp.MustCompile(fmt.Sprintf(`port_value: %d\b`, s.Port())).MatchString(p.given.Cluster + p.given.Assignment) {
			all = append(all, i)
		}
	}
	return all
}

// others are the numbers in all that are not in some.
func others(all, some []int) []int {
	return slices.DeleteFunc(slices.Clone(all), func(i int) bool { return slices.Contains(some, i) })
}
