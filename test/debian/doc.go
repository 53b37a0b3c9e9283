// Package debian gives tests the programs of Debian's packages, without installing them.
package debian
