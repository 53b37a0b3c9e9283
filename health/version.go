package health

import "strings"

// versionLength is the length of a version: 16 hexadecimal digits.
const versionLength = 16

// SplitVersion splits a name that looks like hdsd's own for a version of a cluster into the cluster
// and the version, 16 hexadecimal digits. Of any other name, the version is empty.
func SplitVersion(name string) (cluster, version string) {
	hash := len(name) - versionLength - 1
	if hash < 0 || name[hash] != '#' || strings.Trim(name[hash+1:], "0123456789abcdef") != "" {
		return name, ""
	}
	return name[:hash], name[hash+1:]
}

// ClusterOf returns the cluster of a version by hdsd's own name.
func ClusterOf(name, version string) string {
	if version == "" {
		return name
	}
	return strings.TrimSuffix(name, "#"+version)
}

// TitleOf returns the name for people of a version by hdsd's own name.
func TitleOf(name, version string) string { return VersionTitle(ClusterOf(name, version), version) }

// VersionOf returns the version of a cluster by hdsd's own name and the name outside; empty for
// the first version, for which both are equal.
func VersionOf(name, outside string) string {
	if name == outside {
		return ""
	}
	return strings.TrimPrefix(name, outside+"#")
}

// VersionTitle returns the name for people of a version of a cluster; for the first one, which
// is empty, the cluster's name.
func VersionTitle(cluster, version string) string {
	if version == "" {
		return cluster
	}
	return cluster + " (version " + version + ")"
}
