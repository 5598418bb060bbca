// Command nmeter implements the part of busybox's nmeter that the node suite of Kubernetes uses: it
// prints the time of day with milliseconds. Debian's busybox has no nmeter.
package main

import (
	"fmt"
	"time"
)

func main() { fmt.Println(time.Now().UTC().Format("15:04:05.000")) }
