package ruling_test

import (
	"strings"
	"testing"

	"hdsd/catalog"
	configv1 "hdsd/gen/hdsd/config/v1"
	"hdsd/health"
	"hdsd/log"
)

// version is a cluster that others call web, with another check.
func version(name string, addresses ...string) *catalog.Cluster {
	from := sourceOf("web", addresses...)
	from.Name, from.ServiceName = name, name
	return catalog.Prepare(from, catalog.NewRules(&configv1.Config{}))
}

// TestAVersionBeginsWithTheVerdictsOfTheOthers, and goes its own way from then on.
func TestAVersionBeginsWithTheVerdictsOfTheOthers(t *testing.T) {
	l := newLab(t)
	l.serve(version("web", addresses[:2]...))
	l.vote(a1, down)
	l.vote(a2, up)
	l.say(version("web", addresses[:2]...), version("web#2", addresses...))
	b1, b2, b3 := keyOf("web#2", addresses[0]), keyOf("web#2", addresses[1]), keyOf("web#2", addresses[2])
	l.wantPublished(b1, down)
	l.wantPublished(b2, up)
	l.wantPublished(b3, unknown)
	l.vote(b1, up)
	l.wantPublished(a1, down)
	l.wantPublished(b1, up)

	l.say(version("web#2", addresses...)) // web has gone, and comes again as web#2 is
	l.say(version("web", addresses...), version("web#2", addresses...))
	l.wantPublished(a1, up)
}

// TestAnOverrideByTheNameOutside is for all versions of the cluster, those that come later
// too. One by hdsd's own name is for one of them.
func TestAnOverrideByTheNameOutside(t *testing.T) {
	l := newLab(t)
	first, second := func() *catalog.Cluster { return version("web", addresses[0]) }, func() *catalog.Cluster { return version("web#2", addresses[0]) }
	other := func() *catalog.Cluster { return web("web2", addresses[0]) }
	b1, c1 := keyOf("web#2", addresses[0]), keyOf("web#3", addresses[0])
	l.serve(second(), other())
	if err := l.override(health.Endpoint{Cluster: "web"}, drained, 0); err != nil {
		t.Fatal(err)
	}
	l.say(first(), second(), other())
	l.wantPublished(a1, drained)
	l.wantPublished(b1, drained)
	l.wantPublished(keyOf("web2", addresses[0]), unknown)
	if err := l.override(health.Endpoint{Cluster: "web#2"}, up, 0); err != nil {
		t.Fatal(err)
	}
	l.say(first(), second(), version("web#3", addresses[0]), other())
	l.wantPublished(a1, drained)
	l.wantPublished(b1, up)
	l.wantPublished(c1, drained)
	if would, err := l.table.PreviewOverride(log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: down}); err != nil || would.Endpoints != 2 {
		t.Errorf("an override of web would decide %d endpoints, %v; want those of web and web#3", would.Endpoints, err)
	}
	ended, effects, err := l.table.ClearOverrides(l.now, health.Endpoint{Cluster: "web"}, false, "ann")
	if l.do(effects); err != nil || len(ended) != 1 {
		t.Errorf("ended are %v, %v", ended, err)
	}
	l.wantPublished(a1, unknown)
	l.wantPublished(c1, unknown)
}

// TestAnEndpointKeepsItsVerdictFromVersionToVersion when the last node that lists it takes another
// version of the cluster, whichever comes first.
func TestAnEndpointKeepsItsVerdictFromVersionToVersion(t *testing.T) {
	for _, order := range [][2]int{{0, 1}, {1, 0}} {
		l := newLab(t)
		l.serve(version("web", addresses[:2]...), version("web#2", addresses[2]))
		b1, b3 := keyOf("web#2", addresses[0]), keyOf("web#2", addresses[2])
		l.vote(a1, down)
		l.vote(b3, down)
		say := [2]*catalog.Cluster{version("web", addresses[1:]...), version("web#2", addresses[0])}
		l.say(say[order[0]], say[order[1]])
		l.wantPublished(b1, down)
		l.wantPublished(keyOf("web", addresses[2]), down)
	}
}

// TestTheLastVersionKeepsTheVerdicts of one that goes with the same change.
func TestTheLastVersionKeepsTheVerdicts(t *testing.T) {
	l := newLab(t)
	l.serve(version("web", addresses[0]), version("web#2", addresses[1]))
	l.vote(a1, down)
	l.say(version("web#2", addresses[:2]...))
	l.wantPublished(keyOf("web#2", addresses[0]), down)
}

// TestAllOverridesOfAClusterAreThoseOfItsVersionsToo, of those that have gone as well, and of no cluster
// whose name only looks like one.
func TestAllOverridesOfAClusterAreThoseOfItsVersionsToo(t *testing.T) {
	const present, gone, other = "web#1111111111111111", "web#2222222222222222", "web#3333333333333333"
	l := newLab(t)
	all := func() []*catalog.Cluster {
		return []*catalog.Cluster{version("web", addresses[0]), version(present, addresses[0]), web(other, addresses[0])}
	}
	l.serve(append(all(), version(gone, addresses[0]))...)
	for _, scope := range []health.Endpoint{{Cluster: "web"}, {Cluster: present}, {Cluster: gone, Address: a1.Address}, {Cluster: other}} {
		if err := l.override(scope, drained, 0); err != nil {
			t.Fatal(err)
		}
	}
	l.say(all()...)
	ended, effects, err := l.table.ClearOverrides(l.now, health.Endpoint{Cluster: "web"}, true, "ann")
	if l.do(effects); err != nil || len(ended) != 3 {
		t.Errorf("ended are %v, %v", ended, err)
	}
	l.wantPublished(a1, unknown)
	l.wantPublished(keyOf(present, addresses[0]), unknown)
	l.wantPublished(keyOf(other, addresses[0]), drained)
}

// TestAPreviewSaysWhichVersionPanics.
func TestAPreviewSaysWhichVersionPanics(t *testing.T) {
	l := newLab(t)
	l.serve(version("web", addresses[0]), version("web#2", addresses[0]))
	would, err := l.table.PreviewOverride(log.Override{Scope: health.Endpoint{Cluster: "web"}, Status: drained})
	if err != nil || len(would.Panics) != 2 || !strings.HasPrefix(would.Panics[0], "cluster web (version 2): ") || !strings.HasPrefix(would.Panics[1], "cluster web: ") {
		t.Errorf("%v, %v", would.Panics, err)
	}
}
