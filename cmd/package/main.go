// Command package builds the packages of podd: .deb, .rpm, .apk and tar.gz for each architecture. It
// also writes checksums, and a list of the modules in each binary (an SBOM in the format CycloneDX).
// make packages runs it.
//
//	go build ─▶ podd ──┬─▶ cyclonedx-gomod ─▶ SBOM
//	cmd/podd/docs/man ─┤
//	cmd/package/files ─┴─▶ nfpm ─▶ .deb, .rpm, .apk; archive/tar ─▶ .tar.gz ─▶ SHA256SUMS
//
// Two builds of a commit with the same Go version are byte-identical: the time of each file is the
// time of the commit, or SOURCE_DATE_EPOCH if it is set.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"

	"github.com/alecthomas/kong"
	"golang.org/x/sys/unix"
)

// command is the grammar of the command line.
type command struct {
	Version string   `required:"" help:"Version of podd, in the format of git describe."`
	Arch    []string `default:"amd64,arm64,armv7" enum:"amd64,arm64,armv7" help:"Architectures. One or more of: amd64, arm64, armv7."`
	Format  []string `default:"deb,rpm,apk,tar.gz" enum:"deb,rpm,apk,tar.gz" help:"Formats. One or more of: deb, rpm, apk, tar.gz."`
	Out     string   `default:"bin/packages" help:"Directory for the packages. Packages of an earlier build are removed."`
	Check   bool     `help:"Build everything twice and compare the results."`
}

func main() {
	log.SetFlags(0)
	log.SetPrefix("package: ")
	ctx, stop := signal.NotifyContext(context.Background(), unix.SIGINT, unix.SIGTERM)
	defer stop()
	var c command
	kong.Parse(&c, kong.Name("package"), kong.Description("Build the packages of podd."))
	if err := c.run(ctx); err != nil {
		stop()
		log.Fatal(err)
	}
}

// run builds the packages in the working directory, which is the root of the repository.
func (c command) run(ctx context.Context) error {
	created, err := sourceTime(ctx, ".")
	if err != nil {
		return err
	}
	v, err := parseVersion(c.Version, created)
	if err != nil {
		return err
	}
	b := builder{root: ".", version: v, created: created, archs: c.Arch, formats: c.Format}
	if err := b.buildAll(ctx, c.Out); err != nil {
		return err
	}
	if c.Check {
		if err := b.checkAgain(ctx, c.Out); err != nil {
			return err
		}
	}
	return printFiles(c.Out)
}

// checkAgain builds the packages a second time in another directory and compares them with those in
// dir.
func (b builder) checkAgain(ctx context.Context, dir string) error {
	second, err := os.MkdirTemp("", "podd-packages-")
	if err != nil {
		return fmt.Errorf("checking the packages: %w", err)
	}
	defer os.RemoveAll(second)
	if err := b.buildAll(ctx, second); err != nil {
		return err
	}
	n, err := compareDirs(dir, second)
	if err != nil {
		return fmt.Errorf("checking that two builds are identical: %w", err)
	}
	fmt.Printf("%d files, byte-identical in two builds\n", n)
	return nil
}

// printFiles prints the size and name of each file in dir.
func printFiles(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("listing the packages: %w", err)
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return fmt.Errorf("listing the packages: %w", err)
		}
		fmt.Printf("%6.1f MB  %s\n", float64(info.Size())/1e6, filepath.Join(dir, e.Name()))
	}
	return nil
}

// errDifferent is the error if two builds are not identical.
var errDifferent = errors.New("the two builds differ")
