package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A version is the version of podd in the notation of each format.
type version struct {
	binary string // output of podd version
	// linux is the version in .deb and .rpm packages and in file names. A suffix that begins with ~
	// makes a version lower, and a suffix that begins with + makes it higher. linux contains no
	// dash, because the version of a .rpm package must not contain one.
	linux string
	apk   string // numbers and the suffixes that apk permits, without the commit hash
}

var (
	// describedTag matches the output of git describe with a tag, such as v1.2.3-rc.1-4-g1a2b3c4d.
	describedTag = regexp.MustCompile(`^v?(\d+\.\d+\.\d+)(?:-(alpha|beta|rc)\.?(\d*))?(?:-(\d+)-g([0-9a-f]+))?(-dirty)?$`)
	// describedCommit matches the output of git describe without a tag.
	describedCommit = regexp.MustCompile(`^([0-9a-f]{7,40})(-dirty)?$`)
)

// parseVersion returns the versions for the output of git describe. created is the time of the
// commit. If described contains no tag, the version is lower than the version of every release, and
// a later commit has a higher version. For a source tree without git, described is "devel".
func parseVersion(described string, created time.Time) (version, error) {
	v := version{binary: described}
	dirty := ""
	if strings.HasSuffix(described, "-dirty") {
		dirty = ".dirty"
	}
	if m := describedTag.FindStringSubmatch(described); m != nil {
		v.linux, v.apk = m[1], m[1]
		if m[2] != "" {
			v.linux, v.apk = v.linux+"~"+m[2]+m[3], v.apk+"_"+m[2]+m[3]
		}
		if m[4] != "" {
			v.linux, v.apk = v.linux+"+git"+m[4]+"."+m[5], v.apk+"_git"+m[4]
		} else if dirty != "" {
			dirty = "+dirty"
		}
		v.linux += dirty
		return v, nil
	}
	stamp := created.UTC().Format("20060102150405")
	v.apk = "0.0.0_git" + stamp
	if m := describedCommit.FindStringSubmatch(described); m != nil {
		v.linux = "0.0.0~git" + stamp + "." + m[1] + dirty
		return v, nil
	}
	if described == "devel" {
		v.linux = "0.0.0~git" + stamp
		return v, nil
	}
	return v, fmt.Errorf("version %q: must be the output of git describe, such as v1.2.3, v1.2.3-rc.1 or v1.2.3-4-g1a2b3c4d", described)
}

// sourceTime returns SOURCE_DATE_EPOCH or, if it is not set, the time of the commit in the
// repository dir.
func sourceTime(ctx context.Context, dir string) (time.Time, error) {
	text := os.Getenv("SOURCE_DATE_EPOCH")
	if text == "" {
		out, err := exec.CommandContext(ctx, "git", "-C", dir, "log", "-1", "--format=%ct").Output()
		if err != nil {
			return time.Time{}, fmt.Errorf("reading the time of the commit: %w; without git, set SOURCE_DATE_EPOCH", err)
		}
		text = strings.TrimSpace(string(out))
	}
	seconds, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("SOURCE_DATE_EPOCH %q: must be a number of seconds since 1970", text)
	}
	return time.Unix(seconds, 0).UTC(), nil
}
