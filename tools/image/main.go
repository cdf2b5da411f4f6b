package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// build is what one run makes.
type build struct {
	parts, out, version, revision string
	epoch                         time.Time
}

func main() {
	var b build
	var epoch int64
	var archs string
	flag.StringVar(&b.parts, "parts", "", "the folder of the parts")
	flag.StringVar(&b.out, "out", "", "the folder of the image, which is made anew")
	flag.StringVar(&b.version, "version", "", "the version of the program")
	flag.StringVar(&b.revision, "revision", "", "the commit of the program")
	flag.Int64Var(&epoch, "epoch", 0, "the time of all files, in seconds")
	flag.StringVar(&archs, "arch", "amd64,arm64", "the architectures")
	flag.Parse()
	b.epoch = time.Unix(epoch, 0).UTC()
	if b.parts == "" || b.out == "" || b.version == "" || flag.NArg() > 0 {
		flag.Usage()
		os.Exit(2)
	}
	if err := b.run(strings.Split(archs, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run writes the image of all architectures, and says how large it is.
func (b build) run(archs []string) error {
	if err := os.RemoveAll(b.out); err != nil {
		return err
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	images := map[string]v1.Image{}
	for _, arch := range archs {
		image, err := b.image(arch)
		if err != nil {
			return fmt.Errorf("the image for %s: %w", arch, err)
		}
		images[arch] = image
		if err := tell(arch, image); err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: arch}}})
	}
	path, err := layout.Write(b.out, empty.Index)
	if err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	if err := path.AppendIndex(index, layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": b.version})); err != nil {
		return fmt.Errorf("write the layout: %w", err)
	}
	// For tools that take one image by its name and know no lists.
	for _, arch := range archs {
		name := map[string]string{"org.opencontainers.image.ref.name": b.version + "-" + arch}
		if err := path.AppendImage(images[arch], layout.WithAnnotations(name), layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})); err != nil {
			return fmt.Errorf("write the layout: %w", err)
		}
	}
	digest, err := index.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s  %s, version %s\n", digest, b.out, b.version)
	return nil
}

// tell says how large an image is: what is fetched, and what of it is which layer.
func tell(arch string, image v1.Image) error {
	layers, err := image.Layers()
	if err != nil {
		return err
	}
	var total int64
	var each []string
	for _, l := range layers {
		size, err := l.Size()
		if err != nil {
			return err
		}
		total += size
		each = append(each, megabytes(size))
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	fmt.Printf("%s  linux/%s, %s compressed (Debian %s, Python packages %s, coppice %s)\n", digest, arch, megabytes(total), each[0], each[1], each[2])
	return nil
}

func megabytes(n int64) string { return fmt.Sprintf("%.1f MB", float64(n)/1e6) }

// image makes the image of one architecture.
func (b build) image(arch string) (v1.Image, error) {
	at := filepath.Join(b.parts, arch)
	compiled := filepath.Join(b.parts, "compiled")
	system, python, err := b.system(filepath.Join(at, "root.tar"), compiled)
	if err != nil {
		return nil, err
	}
	packages, err := b.packages(filepath.Join(at, "packages"), compiled, python)
	if err != nil {
		return nil, err
	}
	program, err := b.program(filepath.Join(at, "coppice"))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.ConfigFile(image, b.config(arch))
	if err != nil {
		return nil, err
	}
	var adds []mutate.Addendum
	for _, part := range []struct {
		tree *tree
		made string
	}{{system, "packages of Debian"}, {packages, "Python packages, by their hashes"}, {program, "coppice " + b.version}} {
		layer, err := part.tree.layer()
		if err != nil {
			return nil, fmt.Errorf("the layer of %s: %w", part.made, err)
		}
		adds = append(adds, mutate.Addendum{Layer: layer, History: v1.History{Created: v1.Time{Time: b.epoch}, CreatedBy: part.made}, MediaType: types.OCILayer})
	}
	return mutate.Append(image, adds...)
}
