// Program nnp prints the user that it runs as. In its image it is root's and has
// the setuid bit, so that the answer tells whether that counts.
package main

import (
	"fmt"
	"os"
)

func main() { fmt.Println("Effective uid:", os.Geteuid()) }
