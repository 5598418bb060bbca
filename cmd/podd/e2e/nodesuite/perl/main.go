// Command perl runs the only Perl script of the node suite of Kubernetes: "perl -e SCRIPT" creates a
// file, removes its name, writes a number of MiB to it, and sleeps. The disk space of such a file is
// in use, but no directory contains it. The tests have no image with a real perl.
package main

import (
	"bytes"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var (
	fileName = regexp.MustCompile(`my \$file = "([^"]+)";`)
	size     = regexp.MustCompile(`foreach \(1\.\.([0-9]+)\) \{ syswrite`)
)

// run does what the script does.
func run(args []string) error {
	if len(args) != 2 || args[0] != "-e" {
		return fmt.Errorf("got arguments %q, want -e and the script of the node suite", args)
	}
	name, mib := fileName.FindStringSubmatch(args[1]), size.FindStringSubmatch(args[1])
	if name == nil || mib == nil {
		return fmt.Errorf("got script %q, want the script of the node suite", args[1])
	}
	n, err := strconv.Atoi(mib[1])
	if err != nil {
		return err
	}
	f, err := os.Create(name[1])
	if err != nil {
		return err
	}
	err = os.Remove(name[1])
	for block := bytes.Repeat([]byte("a"), 1<<20); n > 0 && err == nil; n-- {
		_, err = f.Write(block)
	}
	if err != nil {
		return err
	}
	time.Sleep(999999 * time.Second)
	return f.Close()
}
