// SPDX-License-Identifier: Apache-2.0

// Package artifact describes corpora and archives in OCI registries, and moves them with the program btfgen-registry.
//
// An artifact is a manifest with layers, which are files. That of a corpus has a .btfc for each distribution, version and arch; that of an
// archive is one .btfa. docs/corpus-format.md has the media types and annotations.
//
// btfgen links no HTTP client: btfgen-registry is the only program that connects to a registry. It knows nothing of kernels: it prints a
// manifest, downloads the blobs of a manifest to a folder, or pushes those of a folder. [Event] is what it prints. All it brings is as
// untrusted as the registry; [Parse] checks the manifest, and the digests are those in it.
package artifact
