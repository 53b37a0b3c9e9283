package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const about = "# hdsd on the configuration of others\n" +
	"\n" +
	"`make corpus` writes this page from the YAML and JSON files of other projects: the Envoy bootstraps, Clusters and\n" +
	"ClusterLoadAssignments in them, also in xDS responses, config dumps, lists, Kubernetes objects and text within text.\n" +
	"Each bootstrap, and all other resources of a file, are a *set*.\n" +
	"\n" +
	"- hdsd serves each set three times: unchanged, with a default TCP check for all clusters, and with that and\n" +
	"  `resolve_names`, by a DNS server with one IPv4 and one IPv6 address for each name.\n" +
	"- Envoy %s (`--mode validate`) judges each resource alone, as found and as published, with the clusters and secrets\n" +
	"  that it names. Missing certificates, keys and secrets are replaced for both.\n" +
	"- Every hdsd starts, or says why not, within a minute, and ends on request; otherwise there is no page.\n" +
	"- A resource that is not published was rejected alone, or its whole set was refused.\n" +
	"- The projects come from the module proxy; `go run ./corpus FOLDER` in `tools` looks through others. Templates, invalid\n" +
	"  YAML, and files of more than 4 MiB are skipped.\n\n"

// report is the page.
func report(all []*survey) string {
	var d strings.Builder
	fmt.Fprintf(&d, about, envoyVersion)
	writeTable(&d, all)
	var judgements []*judged
	for _, s := range all {
		judgements = append(judgements, s.all...)
	}
	writeList(&d, "Not published, though Envoy takes it", lost, judgements, func(j *judged) string { return j.ours })
	writeList(&d, "Published, and Envoy refuses it, though it takes what was found", spoiled, judgements, func(j *judged) string { return j.given })
	writeList(&d, "Published with fewer endpoints, though Envoy takes what was found", thinned, judgements, func(j *judged) string { return strings.Join(j.aside, "; ") })
	d.WriteString("## Not published, and Envoy refuses it\n\n")
	writeReasons(&d, judgements, func(j *judged) []string {
		return when(j.class() == bad, kindOfReason(j.ours, j.name)+" | "+kindOfReason(j.envoy, j.name))
	}, "hdsd | Envoy")
	ended := 0
	for _, j := range judgements {
		if fault.MatchString(j.envoy) {
			ended++
		}
	}
	fmt.Fprintf(&d, "## Envoy cannot judge\n\nIt refuses what is not in the resource. %d more ended it in a bootstrap; over CDS it takes them. They are not named.\n\n", ended)
	writeReasons(&d, judgements, func(j *judged) []string {
		return when(j.class() == unjudged && !fault.MatchString(j.envoy), cmp.Or(kindOfReason(j.ours, j.name), "published")+" | "+kindOfReason(j.envoy, j.name))
	}, "hdsd | Envoy")
	d.WriteString("## Published as it came, and Envoy refuses it\n\n")
	writeReasons(&d, judgements, func(j *judged) []string { return when(j.class() == asItCame, kindOfReason(j.given, j.name)) }, "Envoy")
	d.WriteString("## Not checked, with a default check for all and names resolved\n\nClusters, or endpoints of them.\n\n")
	writeReasons(&d, judgements, func(j *judged) []string {
		var kinds []string
		for _, reason := range j.aside {
			kinds = append(kinds, kindOfReason(reason, j.name))
		}
		slices.Sort(kinds)
		return slices.Compact(kinds)
	}, "reason")
	return d.String()
}

func when(is bool, reason string) []string {
	if is {
		return []string{reason}
	}
	return nil
}

func writeTable(d *strings.Builder, all []*survey) {
	d.WriteString("## By project\n\n" +
		"| project | version | files | sets | whole sets refused | clusters | assignments | published | of these, Envoy refuses as it came | only as published | with fewer endpoints | " +
		"not published: both refuse | **hdsd alone refuses** | Envoy cannot judge | clusters checked | with a default | endpoints then | with names resolved, too | endpoints then |\n|" +
		strings.Repeat(" --- |", 19) + "\n")
	total := &survey{project: project{name: "all"}}
	for _, s := range all {
		writeRow(d, s)
		total.add(s)
	}
	writeRow(d, total)
	d.WriteString("\n")
}

func writeRow(d *strings.Builder, s *survey) {
	var in [classes]int
	var clusters, published int
	var checked, endpoints [variants]int
	for _, j := range s.all {
		in[j.class()]++
		if j.published {
			published++
		}
		if j.url == clusterURL {
			clusters++
		}
		for i := range checked {
			if j.checked[i] {
				checked[i]++
			}
			endpoints[i] += j.endpoints[i]
		}
	}
	fmt.Fprintf(d, "| %s | %s | %d | %d | %d | %d | %d | %d | %d | %d | %d | %d | **%d** | %d | %d | %d | %d | %d | %d |\n", s.name, s.version, s.files, s.sets, s.refused,
		clusters, len(s.all)-clusters, published, in[asItCame], in[spoiled], in[thinned], in[bad], in[lost], in[unjudged],
		checked[asItIs], checked[checking], endpoints[checking], checked[naming], endpoints[naming])
}

// writeList names all resources of a class.
func writeList(d *strings.Builder, title string, of class, all []*judged, reason func(*judged) string) {
	fmt.Fprintf(d, "## %s\n\n", title)
	none := true
	for _, j := range all {
		if j.class() != of {
			continue
		}
		if none {
			d.WriteString("| project | file | kind | resource | reason |\n| --- | --- | --- | --- | --- |\n")
		}
		none = false
		fmt.Fprintf(d, "| %s | %s | %s | %s | %s |\n", j.project, j.file, j.kind(), cell(j.name), cell(placeless(reason(j))))
	}
	if none {
		d.WriteString("None.\n")
	}
	d.WriteString("\n")
}

// writeReasons counts resources by kind of reason.
func writeReasons(d *strings.Builder, all []*judged, kinds func(*judged) []string, header string) {
	counts, first := map[string]int{}, map[string]*judged{}
	for _, j := range all {
		for _, kind := range kinds(j) {
			counts[kind]++
			first[kind] = cmp.Or(first[kind], j)
		}
	}
	if len(counts) == 0 {
		d.WriteString("None.\n\n")
		return
	}
	fmt.Fprintf(d, "| resources | %s | the first |\n| --- |%s\n", header, strings.Repeat(" --- |", 2+strings.Count(header, "|")))
	for _, kind := range slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(counts[b]-counts[a], strings.Compare(a, b))
	}) {
		fmt.Fprintf(d, "| %d | %s | %s %s: %s |\n", counts[kind], kind, first[kind].project, first[kind].file, cell(first[kind].name))
	}
	d.WriteString("\n")
}

// cell makes text fit one.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", `\|`)
}
