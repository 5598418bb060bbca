package safepath

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Follow returns an O_PATH descriptor of the file to which name leads. The file may have
// any type and is not opened. Follow follows links that stay below d. It returns ErrOutside
// for all other links, including all absolute links.
func (d *Dir) Follow(name string) (*os.File, error) { return d.follow(name, unix.O_PATH) }

// FollowFile opens the regular file to which name leads for reading. It follows the same links as
// Follow. For other types it returns ErrNotRegular without opening the file.
func (d *Dir) FollowFile(name string) (*os.File, error) {
	pathFile, err := d.Follow(name)
	if err != nil {
		return nil, err
	}
	defer pathFile.Close()
	return d.reopenRegular(int(pathFile.Fd()), name, unix.O_RDONLY)
}

// FollowDir opens the directory to which name leads. It follows the same links as Follow.
func (d *Dir) FollowDir(name string) (*Dir, error) {
	f, err := d.follow(name, unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	return &Dir{f}, nil
}

func (d *Dir) follow(name string, flags uint64) (*os.File, error) {
	if !filepath.IsLocal(name) {
		return nil, d.pathError("follow", name, fs.ErrInvalid)
	}
	fd, err := retry(func() (int, error) {
		return unix.Openat2(d.Fd(), name, &unix.OpenHow{
			Flags:   flags | unix.O_CLOEXEC,
			Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_MAGICLINKS,
		})
	})
	// openat2 also returns ELOOP for magic links
	if errors.Is(err, unix.EXDEV) || errors.Is(err, unix.ELOOP) {
		err = ErrOutside
	}
	if err != nil {
		return nil, d.pathError("follow", name, err)
	}
	return os.NewFile(uintptr(fd), filepath.Join(d.Path(), name)), nil
}
