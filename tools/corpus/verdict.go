package main

import (
	"regexp"
	"strings"
)

// class is how hdsd and Envoy judge one resource.
type class int

// The classes. Where a resource is published, the question is whether Envoy
// takes what hdsd made of it; where it is not, whether Envoy takes it as it is.
const (
	good     class = iota // published, and Envoy takes that
	asItCame              // published, and Envoy refuses that, as it refuses what was found
	spoiled               // published, and Envoy refuses that, though it takes what was found
	thinned               // published with fewer endpoints, though Envoy takes what was found
	bad                   // not published, and Envoy refuses it
	lost                  // not published, though Envoy takes it
	unjudged              // what Envoy refuses is not in the resource
	classes  int   = iota
)

// judged is one resource and what was said of it.
type judged struct {
	resource
	project, file string
	published     bool
	ours          string // why hdsd does not publish it
	envoy         string // why Envoy refuses it as it was found
	given         string // why Envoy refuses what hdsd publishes
	fewer         bool   // endpoints are published than were found
	checked       [variants]bool
	endpoints     [variants]int // that are checked
	aside         []string      // with a default for all: why it is not checked, or an endpoint of it
}

func (j *judged) class() class {
	switch {
	case j.published && j.given == "" && j.envoy == "" && j.fewer:
		return thinned
	case j.published && j.given == "":
		return good
	case j.published && j.envoy == "":
		return spoiled
	case j.envoy == "":
		return lost
	case elsewhere.MatchString(j.envoy):
		return unjudged
	case j.published:
		return asItCame
	default:
		return bad
	}
}

// elsewhere is what Envoy says for want of something that is not here, as files and
// secrets of the bootstrap are.
var elsewhere = regexp.MustCompile(`does not exist|unable to read file|[Ii]nvalid path|Unknown static|Segmentation fault`)

// fault is what an Envoy says that ends by what it is given. The page does not say by what.
var fault = regexp.MustCompile(`Segmentation fault`)

var place = regexp.MustCompile(`^(its ClusterLoadAssignment: )?set\.\w+(:\d+)?: `)

// placeless leaves out where in the file of a set something is wrong.
func placeless(reason string) string { return place.ReplaceAllString(reason, "$1") }

// What is of one case only in a reason, and what stands for it.
var particulars = []struct {
	what *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`^(Protobuf message \(type \S+ reason |Unable to parse JSON as proto \()INVALID_ARGUMENT: `), ""},
	{regexp.MustCompile(`\): \{.*`), ""},           // what could not be parsed
	{regexp.MustCompile(`goo\.gle/debug\w+ `), ""}, // which protobuf writes before a message, and changes
	{regexp.MustCompile(`(malformed IP address: )\S+[^. ]`), "$1…"},
	{regexp.MustCompile(`"[^"]*"|\B'[^']*'`), "…"},
	{regexp.MustCompile(`\S*[0-9a-f]{32}\S*`), "…"},
	{regexp.MustCompile(`/\S*/`), "…/"},
	{regexp.MustCompile(`\b\d+\b`), "N"},
	{regexp.MustCompile(`^(resources|static_resources\.clusters)\[N\]\.`), ""},
}

// kindOfReason leaves that out, so that like can be counted with like.
func kindOfReason(reason, name string) string {
	reason = strings.TrimPrefix(placeless(reason), name+": ")
	for _, p := range particulars {
		reason = strings.TrimPrefix(p.what.ReplaceAllString(reason, p.by), name+": ")
	}
	if most := 160; len(reason) > most {
		reason = strings.ToValidUTF8(reason[:most], "") + " …"
	}
	return cell(reason)
}

// reasonIn gives what a refusal of a whole file says of one resource: the line
// with its name, else the first.
func reasonIn(refused, name string) string {
	lines := strings.Split(strings.TrimSpace(refused), "\n")
	for _, line := range lines {
		if strings.Contains(line, ": "+name+": ") {
			return line
		}
	}
	return strings.TrimPrefix(lines[0], "hdsd: source corpus: ")
}
