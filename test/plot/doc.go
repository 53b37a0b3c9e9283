// Package plot draws the plots of the documents that measurements write.
package plot
