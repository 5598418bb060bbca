// Package image contains the programs of test images that the original images take from a Linux
// distribution.
package image
