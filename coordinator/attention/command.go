package attention

import "strings"

// These are commands for the next step. They run in a shell, whatever the names in them are.

// Cluster returns the command for the next step at a cluster.
func Cluster(name string) string { return "hdsd describe cluster " + Quoted(name) }

// Endpoint returns the command for the next step at an endpoint.
func Endpoint(cluster, address string) string {
	return "hdsd describe endpoint " + Quoted(cluster, address)
}

// Checker returns the command for the next step at a checker.
func Checker(id string) string { return "hdsd describe checker " + Quoted(id) }

// Zone returns the command for the next step at a zone, "region/zone".
func Zone(name string) string { return "hdsd endpoints --unhealthy --locality=" + quote(name) }

// Quoted quotes arguments for a shell, so that none of them is taken for a flag.
func Quoted(arguments ...string) string {
	flags := ""
	words := make([]string, len(arguments))
	for i, a := range arguments {
		if words[i] = quote(a); strings.HasPrefix(a, "-") {
			flags = "-- "
		}
	}
	return flags + strings.Join(words, " ")
}

func quote(name string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:/@%+=-", r)
	}
	if name != "" && !strings.HasPrefix(name, "-") && strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) < 0 {
		return name
	}
	return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
}
