package attention

import "strings"

// The commands to go on with. They run in a shell, whatever the names in them are.

// Cluster is the command to go on with at a cluster.
func Cluster(name string) string { return "hdsd describe cluster " + Quoted(name) }

// Endpoint is the command to go on with at an endpoint.
func Endpoint(cluster, address string) string {
	return "hdsd describe endpoint " + Quoted(cluster, address)
}

// Checker is the command to go on with at a checker.
func Checker(id string) string { return "hdsd describe checker " + Quoted(id) }

// Zone is the command to go on with at a zone, "region/zone".
func Zone(name string) string { return "hdsd endpoints --unhealthy --locality=" + quote(name) }

// Quoted gives arguments as a shell takes them, and none of them for a flag.
func Quoted(arguments ...string) string {
	flags := ""
	all := make([]string, len(arguments))
	for i, a := range arguments {
		if all[i] = quote(a); strings.HasPrefix(a, "-") {
			flags = "-- "
		}
	}
	return flags + strings.Join(all, " ")
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
