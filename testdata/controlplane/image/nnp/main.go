// Command nnp prints its effective user. In its image the file is owned by root and has the
// setuid bit, so that the output shows whether that bit is effective.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println("Effective uid:", os.Geteuid()) }
