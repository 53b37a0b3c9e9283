// Command release builds hdsd for others: for each platform an archive with the
// program, the documents, the licences of everything that is linked, and a bill of
// materials in the CycloneDX format; and the SHA-256 of each.
//
//	make release            # into bin/release
//	cd tools && go run ./release ROOT OUT
//
// Two builds of one commit with one Go release give the same bytes. Nothing in an
// archive depends on the machine, the folder or the time: files carry the time of the
// commit, and are sorted. A module whose licence is not on the list of licenses.go ends
// the build.
//
// build.go builds the programs; modules.go reads what is linked from the program itself;
// packages.go reads what the page bundles;
// licenses.go finds and names the licences; materials.go writes the bill of materials;
// archive.go packs. It starts no goroutine.
package main
