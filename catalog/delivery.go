package catalog

// Delivery is one change of the clusters.
type Delivery struct {
	Rules    *Rules
	Answered map[string]bool // sources that have answered in full
	Complete bool            // all sources have answered in full
	Changed  []Change        // new and changed clusters
	Removed  []string        // names of removed clusters
}

// Change is a new or changed cluster.
type Change struct {
	Cluster *Cluster
	Renewed []bool // by endpoint of Cluster.Checked: checkers treat it as new; nil if none
}
