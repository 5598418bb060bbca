// Package image has the programs of test images that Kubernetes' own images take
// from a distribution.
package image
