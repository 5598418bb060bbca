package offline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"podd/cmd/podd/internal/cli/printer"
	"podd/cmd/podd/internal/config"
	"podd/cmd/podd/internal/exit"
	"podd/cmd/podd/internal/iostreams"
	"podd/cmd/podd/internal/paths"
	"podd/cmd/podd/internal/rootdir"
	"podd/cmd/podd/internal/runonce"
	"podd/manifest"
	"podd/reconcile/journal"
	"podd/reconcile/volume"
	"podd/server"
)

// VolumeCmd is the podd volume command. It accepts the flags of podd run, to find the
// desired claims if podd does not run.
type VolumeCmd struct {
	config.Flags
	Action string   `arg:"" enum:"ls,rm" help:"ls lists the volumes. rm removes those of the named claims with their data."`
	Output string   `short:"o" enum:",json,yaml" default:"" placeholder:"FORMAT" help:"Output format of ls. One of: json, yaml."`
	Claims []string `arg:"" optional:"" name:"claim" help:"Claims as NAMESPACE/NAME, or NAME in the default namespace." complete:"claim"`
}

// KubeletFlags returns the flags that the kubelet has, too.
func (c *VolumeCmd) KubeletFlags() *config.Flags { return &c.Flags }

// Validate rejects rm without claims.
func (c *VolumeCmd) Validate() error {
	if c.Action == "rm" && len(c.Claims) == 0 {
		return errors.New("name what to remove; podd volume ls lists the claims")
	}
	if c.Action == "rm" && c.Output != "" {
		return errors.New("-o is of podd volume ls")
	}
	return nil
}

// Run lists or removes the data of claims. The pod directories show which pods use a
// claim. The running podd, or else the given sources, show which claims are desired.
func (c *VolumeCmd) Run(ctx context.Context, s iostreams.Streams) error {
	cfg, err := config.LoadHere(c.Flags, s.Err)
	if err != nil {
		return err
	}
	running := runningState(ctx, &c.Flags, &cfg, s.Err)
	if err := cfg.CheckNodeName(); err != nil {
		return err
	}
	k := volumeCommand{cfg: &cfg, out: s.Out, err: s.Err, claims: volume.Claims{Root: rootdir.Claims(cfg.RootDir)}}
	k.desired, err = desiredClaims(ctx, running, &cfg)
	switch {
	case errors.Is(err, errNoSources) && c.Action == "ls":
	case errors.Is(err, errNoSources):
		return exit.With(exit.Usage, fmt.Errorf("removing volumes: %w", err))
	case err != nil:
		return err
	}
	if c.Action == "ls" {
		return k.list(c.Output)
	}
	return k.remove(ctx, c.Claims)
}

// volumeCommand is one run of podd volume.
type volumeCommand struct {
	cfg      *config.Config
	out, err io.Writer
	claims   volume.Claims
	desired  []server.ClaimView
}

// request returns the requested size and the position of a desired claim, or "".
func (k *volumeCommand) request(name types.NamespacedName) (size, place string) {
	for _, c := range k.desired {
		if c.Claim == server.Key(name) {
			return c.Requested, manifest.Origin{Path: c.Path, Line: c.Line}.String()
		}
	}
	return "", ""
}

// podRoots returns the directories that contain pod directories: that of podd, and those
// of runs to completion.
func (k *volumeCommand) podRoots() []string {
	roots := []string{rootdir.Pods(k.cfg.RootDir)}
	for _, run := range (runonce.RunDirs{Root: k.cfg.RootDir}).All() {
		roots = append(roots, rootdir.Pods(run))
	}
	return roots
}

// podNames returns the names of pods by the UIDs of their directories.
func (k *volumeCommand) podNames(uids []types.UID) ([]string, error) {
	var list []string
	known := map[types.UID]types.NamespacedName{}
	for _, root := range k.podRoots() {
		names, err := journal.Store{Root: root}.Names()
		if err != nil {
			return nil, err
		}
		for uid, name := range names {
			known[uid] = name
		}
	}
	for _, uid := range uids {
		name := strings.TrimSuffix(known[uid].Name, "-"+k.cfg.NodeName)
		list = append(list, cmp.Or(name, string(uid)))
	}
	slices.Sort(list)
	return slices.Compact(list), nil
}

// keptVolume is the data of one claim.
type keptVolume struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Requested string `json:"requested,omitempty"` // "1Gi"; "" without a claim
	// UsedBy contains the pods that have a directory.
	UsedBy []string `json:"usedBy,omitempty"`
	// WantedBy is the position of the claim, or "".
	WantedBy string `json:"wantedBy,omitempty"`
	// Volume is the PersistentVolume of the claim; "" for a directory of podd.
	Volume string `json:"volume,omitempty"`
	Path   string `json:"path"`
}

func (k *volumeCommand) volumes() ([]keptVolume, error) {
	all, err := k.claims.List(k.podRoots()...)
	if err != nil {
		return nil, err
	}
	out := []keptVolume{}
	for _, one := range all {
		users, err := k.podNames(one.Users)
		if err != nil {
			return nil, err
		}
		size, place := k.request(one.NamespacedName)
		out = append(out, keptVolume{one.Namespace, one.Name, size, users, place, one.Volume, one.Path})
	}
	return out, nil
}

func (k *volumeCommand) list(format string) error {
	kept, err := k.volumes()
	switch {
	case err != nil:
		return err
	case format != "":
		return printer.Data(k.out, format, kept)
	case len(kept) == 0:
		fmt.Fprintln(k.err, "podd: no claim has a volume")
		return nil
	}
	lines := [][]string{{"NAMESPACE", "NAME", "REQUESTED", "USED BY", "WANTED BY", "VOLUME"}}
	for _, one := range kept {
		place, where := one.WantedBy, one.Path
		if place != "" {
			place = paths.Short(place, paths.WorkingDir())
		}
		if one.Volume != "" {
			where = "PersistentVolume " + one.Volume
		}
		line := []string{one.Namespace, one.Name, printer.OrNone(one.Requested), printer.OrNone(strings.Join(one.UsedBy, ",")), printer.OrNone(place), where}
		for i := range line {
			line[i] = printer.Escape(line[i])
		}
		lines = append(lines, line)
	}
	var t printer.Table
	t.Fit(lines)
	for _, line := range lines {
		if _, err := io.WriteString(k.out, t.Line(line)); err != nil {
			return err
		}
	}
	return nil
}

// remove removes nothing if one of the claims is desired.
func (k *volumeCommand) remove(ctx context.Context, claims []string) error {
	var names []types.NamespacedName
	for _, text := range claims {
		namespace, name, ok := strings.Cut(text, "/")
		if !ok {
			namespace, name = v1.NamespaceDefault, text
		}
		key := types.NamespacedName{Namespace: namespace, Name: name}
		if _, place := k.request(key); place != "" {
			return fmt.Errorf("removing claim %s: %s wants it; take it out of there first", key, place)
		}
		names = append(names, key)
	}
	for _, name := range names {
		err := k.removeOne(ctx, name)
		if err != nil && !errors.Is(err, volume.ErrLeft) {
			return err
		}
		if err != nil {
			fmt.Fprintf(k.err, "podd: warning: %v\n", err)
		}
		fmt.Fprintf(k.err, "podd: claim %s removed\n", name)
	}
	return nil
}

func (k *volumeCommand) removeOne(ctx context.Context, name types.NamespacedName) error {
	err := k.claims.Remove(ctx, name, k.podRoots()...)
	if !errors.Is(err, volume.ErrInUse) {
		return err
	}
	kept, lost := k.claims.List(k.podRoots()...)
	for _, one := range kept {
		if users, why := k.podNames(one.Users); one.NamespacedName == name && why == nil && lost == nil {
			return fmt.Errorf("%w: %s; remove these first", err, strings.Join(users, ","))
		}
	}
	return err
}
