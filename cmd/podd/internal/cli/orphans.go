package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/alecthomas/kong"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/client"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/printer"
	"podd/server"
)

// OrphansCmd is the podd orphans command.
type OrphansCmd struct {
	client.Flags
	Action string   `arg:"" optional:"" enum:"ls,rm" default:"ls" help:"ls lists the directories. rm removes the named ones with their data."`
	UIDs   []string `arg:"" optional:"" name:"uid" help:"Pod UIDs, which are the names of the directories."`
	All    bool     `help:"With rm: remove all orphaned pod directories."`
	Output string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"Output format of ls. One of: json, yaml."`
}

// Help describes orphaned directories.
func (c *OrphansCmd) Help() string {
	return `An orphaned directory belongs to no known pod. podd keeps and reports such a directory in two cases: the directory has a journal that podd cannot use (damaged, unreadable or written by a newer podd), or the directory has no journal, but contains a mount point or data in volumes. A kubelet that used this root directory earlier may also have left such directories.

rm removes a directory, its data, and the logs of its pod. It unmounts the volumes that podd mounted. If another filesystem is mounted in the directory, rm removes nothing below that mount point and reports the mount point.`
}

// Validate returns an error for a combination of arguments and flags that is not permitted.
func (c *OrphansCmd) Validate(*kong.Context) error {
	switch {
	case c.Action == "ls" && (len(c.UIDs) > 0 || c.All):
		return errors.New("UIDs and --all can be used only with rm")
	case c.Action == "rm" && len(c.UIDs) == 0 && !c.All:
		return errors.New("missing UIDs to remove, or --all; \"podd orphans\" lists the UIDs")
	case c.Action == "rm" && len(c.UIDs) > 0 && c.All:
		return errors.New("UIDs and --all cannot be used together")
	case c.Action == "rm" && c.Output != "":
		return errors.New("-o can be used only with ls")
	}
	return nil
}

// Run lists or removes the orphaned directories of the running podd.
func (c *OrphansCmd) Run(ctx context.Context, s iostreams.Streams) error {
	p, err := c.Connect(ctx)
	if err != nil {
		return err
	}
	var orphans []server.Orphan
	if c.Action == "ls" || c.All {
		if orphans, err = p.ListOrphans(ctx); err != nil {
			return err
		}
	}
	if c.Action == "ls" {
		return c.print(orphans, s)
	}
	uids := c.UIDs
	for _, o := range orphans {
		uids = append(uids, string(o.UID))
	}
	return removeOrphans(ctx, p, uids, s)
}

// removeOrphans removes the directories. It continues after an error.
func removeOrphans(ctx context.Context, p *client.Client, uids []string, s iostreams.Streams) error {
	var errs []error
	for _, uid := range uids {
		if err := p.RemoveOrphan(ctx, types.UID(uid)); err != nil {
			errs = append(errs, err)
			continue
		}
		fmt.Fprintf(s.Err, "podd: pod directory %s removed\n", printer.Escape(uid))
	}
	if len(uids) == 0 {
		fmt.Fprintln(s.Err, "podd: no orphaned pod directories")
	}
	return errors.Join(errs...)
}

// print prints orphaned directories in the selected format.
func (c *OrphansCmd) print(orphans []server.Orphan, s iostreams.Streams) error {
	switch {
	case c.Output != "":
		return printer.WriteData(s.Out, c.Output, orphans)
	case len(orphans) == 0:
		fmt.Fprintln(s.Err, "podd: no orphaned pod directories")
		return nil
	}
	lines := [][]string{{"UID", "SIZE", "REASON", "PATH"}}
	for _, o := range orphans {
		lines = append(lines, []string{printer.Escape(string(o.UID)), formatOrphanSize(o), printer.Escape(o.Reason), printer.Escape(o.Path)})
	}
	_, err := io.WriteString(s.Out, (&printer.Table{}).FormatLines(lines))
	return err
}

// formatOrphanSize formats the size of a directory, or returns "unknown" if the size was not
// measured. It appends "+" if only a part of the directory was measured.
func formatOrphanSize(o server.Orphan) string {
	if o.UnmeasuredReason != "" {
		return "unknown"
	}
	size := formatSize(o.Bytes)
	if o.IsPartial {
		size += "+"
	}
	return size
}

// formatSize formats a number of bytes, rounded up to KiB, MiB or GiB.
func formatSize(bytes int64) string {
	unit := int64(1 << 10)
	for unit < 1<<30 && bytes >= 10*unit<<10 {
		unit <<= 10
	}
	return resource.NewQuantity((bytes+unit-1)/unit*unit, resource.BinarySI).String()
}
