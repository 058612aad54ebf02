/* SPDX-License-Identifier: MIT */
/* files.c - faulty files: files that are not objects, objects with one defect, and
 * unusual kinds of files. */
#define _GNU_SOURCE
#include "faults.h"

#include <elf.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- files that are not objects ---- */

#define TEXT_FAULT(function, text)                                                         \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        (void)directory;                                                                   \
        write_file(path, text, sizeof(text) - 1);                                          \
    }
TEXT_FAULT(make_empty, "")
TEXT_FAULT(make_byte, "\x7f")
TEXT_FAULT(make_magic, "\x7f"
                       "ELF")
TEXT_FAULT(make_text, "This is a plugin.\n")
TEXT_FAULT(make_script, "#!/bin/sh\nexit 0\n")
TEXT_FAULT(make_linker_script, "/* GNU ld script */\nGROUP ( libc.so.6 )\n")
TEXT_FAULT(make_archive,
           "!<arch>\nhello.o/        0           0     0     644     0         `\n")
TEXT_FAULT(make_pe, "MZ\x90\0\3\0\0\0\4\0\0\0\xff\xff\0\0")
TEXT_FAULT(make_macho, "\xcf\xfa\xed\xfe\x0c\0\0\1\0\0\0\0\6\0\0\0")
TEXT_FAULT(make_macho_fat, "\xca\xfe\xba\xbe\0\0\0\2\1\0\0\7\0\0\0\3")
#undef TEXT_FAULT

static void make_zeros(const char *directory, char path[4096])
{
    static const char zeros[8192];
    (void)directory;
    write_file(path, zeros, sizeof zeros);
}

/* ---- objects with one defect ---- */

/* Replaces "plain" in the made files, so that several faults of that plugin fit into one
 * directory. */
static char alias[] = "plain";

void made_name(const char *name)
{
    assert_int_equal(strlen(name), strlen(alias));
    memcpy(alias, name, strlen(name));
}

static void rename_all(unsigned char *bytes, size_t size)
{
    static const char plain[] = "plain";
    const size_t length = sizeof plain - 1;
    unsigned char *at = bytes;
    while ((at = memmem(at, size - (size_t)(at - bytes), plain, length)))
        memcpy(at, alias, length);
}

/* Reads a fixture and replaces its name. */
static unsigned char *read_built(const char *name, size_t *size)
{
    unsigned char *bytes = read_file(built(name), size);
    if (strcmp(alias, "plain") != 0)
        rename_all(bytes, *size);
    return bytes;
}

/* A copy of hw_plain.so in memory, to be changed and written to a file. */
struct image {
    unsigned char *bytes;
    size_t size;
};

static struct image load_image_of(const char *name)
{
    struct image image;
    image.bytes = read_built(name, &image.size);
    return image;
}

/* The name in its manifest fits no file that has to be named like hw_plain.so, and is longer. */
static struct image load_hashed(void)
{
    static const char name[] = "name=hashed\n";
    struct image image = load_image_of("hashed");
    unsigned char *at = memmem(image.bytes, image.size, name, sizeof name - 1);
    assert_non_null(at);
    memcpy(at + 5, alias, sizeof alias - 1);
    memcpy(at + 5 + sizeof alias - 1, "\n\n", 2);
    return image;
}

static struct image load_image(void)
{
    return load_image_of("plain");
}

static void write_image(const struct image *image, size_t size, const char *directory,
                        char path[4096])
{
    snprintf(path, 4096, "%s/hw_%s.so", directory, alias);
    write_file(path, image->bytes, size);
    free(image->bytes);
}

static ElfW(Ehdr) * header(const struct image *image)
{
    return (ElfW(Ehdr) *)(void *)image->bytes;
}

static ElfW(Phdr) * segment(const struct image *image, uint32_t type)
{
    ElfW(Phdr) *row = (ElfW(Phdr) *)(void *)(image->bytes + header(image)->e_phoff);
    for (unsigned i = 0; i < header(image)->e_phnum; i++)
        if (row[i].p_type == type)
            return &row[i];
    fail_msg("hw_plain.so has no segment of type %u", type);
    return NULL;
}

static ElfW(Dyn) * dynamic(const struct image *image, int64_t tag)
{
    ElfW(Dyn) *row =
        (ElfW(Dyn) *)(void *)(image->bytes + segment(image, PT_DYNAMIC)->p_offset);
    while (row->d_tag != DT_NULL && row->d_tag != tag)
        row++;
    assert_int_equal(row->d_tag, tag);
    return row;
}

/* Replaces the first `from` in the file by `to`, which has the same length. */
static void replace(const struct image *image, const char *from, const char *to)
{
    unsigned char *at = memmem(image->bytes, image->size, from, strlen(from));
    assert_non_null(at);
    memcpy(at, to, strlen(to));
}

#define IMAGE_FAULT(function, change)                                                      \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        struct image image = load_image();                                                 \
        change;                                                                            \
        write_image(&image, image.size, directory, path);                                  \
    }
IMAGE_FAULT(make_class, header(&image)->e_ident[EI_CLASS] = ELFCLASS32)
IMAGE_FAULT(make_class_none, header(&image)->e_ident[EI_CLASS] = 77)
IMAGE_FAULT(make_order, header(&image)->e_ident[EI_DATA] ^= 3)
IMAGE_FAULT(make_machine, header(&image)->e_machine = EM_SPARCV9)
IMAGE_FAULT(make_version, header(&image)->e_version = 2)
IMAGE_FAULT(make_exec, header(&image)->e_type = ET_EXEC)
IMAGE_FAULT(make_core, header(&image)->e_type = ET_CORE)
IMAGE_FAULT(make_rel, header(&image)->e_type = ET_REL)
IMAGE_FAULT(make_type, header(&image)->e_type = 0xfe01)
IMAGE_FAULT(make_phentsize, header(&image)->e_phentsize = 1)
IMAGE_FAULT(make_phnum_none, header(&image)->e_phnum = 0)
IMAGE_FAULT(make_phnum_many, header(&image)->e_phnum = 0xffff)
IMAGE_FAULT(make_phoff, header(&image)->e_phoff = image.size - 1)
IMAGE_FAULT(make_phoff_wraps, header(&image)->e_phoff = (ElfW(Off)) - 8)
IMAGE_FAULT(make_shoff, header(&image)->e_shoff = image.size)
IMAGE_FAULT(make_shentsize, header(&image)->e_shentsize = 7)
IMAGE_FAULT(make_sections_many, header(&image)->e_shnum = 0xfff0)
IMAGE_FAULT(make_load_offset, segment(&image, PT_LOAD)->p_offset += 1)
IMAGE_FAULT(make_load_long, segment(&image, PT_LOAD)->p_filesz =
                                segment(&image, PT_LOAD)->p_memsz = image.size + 4096)
IMAGE_FAULT(make_load_wraps, segment(&image, PT_LOAD)->p_filesz = (ElfW(Addr)) - 1)
IMAGE_FAULT(make_load_small, segment(&image, PT_LOAD)->p_memsz = 1)
IMAGE_FAULT(make_load_align, segment(&image, PT_LOAD)->p_align = 3)
IMAGE_FAULT(make_load_huge, segment(&image, PT_LOAD)->p_memsz = (ElfW(Addr))1 << 46)
IMAGE_FAULT(make_load_overlaps, segment(&image, PT_LOAD)->p_memsz = 1 << 20)
IMAGE_FAULT(make_load_none, header(&image)->e_phnum = 1;
            segment(&image, PT_LOAD)->p_type = PT_NULL)
IMAGE_FAULT(make_dynamic_none, segment(&image, PT_DYNAMIC)->p_type = PT_NULL)
IMAGE_FAULT(make_dynamic_outside, segment(&image, PT_DYNAMIC)->p_vaddr += 1 << 30)
IMAGE_FAULT(make_dynamic_empty, segment(&image, PT_DYNAMIC)->p_filesz = 0)
IMAGE_FAULT(make_dynamic_endless,
            segment(&image, PT_DYNAMIC)->p_filesz = 2 * sizeof(ElfW(Dyn)))
IMAGE_FAULT(make_strtab, dynamic(&image, DT_STRTAB)->d_un.d_ptr += 1 << 30)
IMAGE_FAULT(make_strsz_none, dynamic(&image, DT_STRSZ)->d_un.d_val = 0)
IMAGE_FAULT(make_strsz_huge, dynamic(&image, DT_STRSZ)->d_un.d_val = (ElfW(Addr)) - 1)
IMAGE_FAULT(make_strsz_cut, dynamic(&image, DT_STRSZ)->d_un.d_val -= 2)
IMAGE_FAULT(make_symtab, dynamic(&image, DT_SYMTAB)->d_un.d_ptr = 1 << 30)
IMAGE_FAULT(make_syment, dynamic(&image, DT_SYMENT)->d_un.d_val = 1)
IMAGE_FAULT(make_hash, dynamic(&image, DT_GNU_HASH)->d_un.d_ptr += 1 << 30)
IMAGE_FAULT(make_needed, dynamic(&image, DT_NEEDED)->d_un.d_val = 1 << 30)
IMAGE_FAULT(make_rela, dynamic(&image, DT_RELASZ)->d_un.d_val = 1 << 30)
IMAGE_FAULT(make_init, dynamic(&image, DT_INIT)->d_un.d_ptr = 1 << 30)
IMAGE_FAULT(make_init_array, dynamic(&image, DT_INIT_ARRAYSZ)->d_un.d_val = 1 << 30)
IMAGE_FAULT(make_verneed, dynamic(&image, DT_VERNEED)->d_un.d_ptr = 1 << 30)
IMAGE_FAULT(make_stack, segment(&image, PT_GNU_STACK)->p_flags |= PF_X)
IMAGE_FAULT(make_note_outside, segment(&image, PT_NOTE)->p_offset = image.size)
IMAGE_FAULT(make_library, replace(&image, "libc.so.6", "libq.so.6"))
IMAGE_FAULT(make_libc, replace(&image, "GLIBC_2.", "GLIBC_9."))
IMAGE_FAULT(make_symbol, replace(&image, "hw_plugin_entry", "hw_plugin_entrY"))
#undef IMAGE_FAULT

static void make_hash_none(const char *directory, char path[4096])
{
    struct image image = load_image();
    ElfW(Dyn) *row = dynamic(&image, DT_STRTAB);
    for (row -= 2; row->d_tag == DT_HASH || row->d_tag == DT_GNU_HASH; row--)
        ;
    for (row++; row->d_tag != DT_STRTAB; row++)
        row->d_tag = DT_DEBUG;
    write_image(&image, image.size, directory, path);
}

/* The dynamic loader divides by the number of buckets. */
static void make_hash_no_buckets(const char *directory, char path[4096])
{
    struct image image = load_image();
    memset(image.bytes + dynamic(&image, DT_GNU_HASH)->d_un.d_ptr, 0, 4);
    write_image(&image, image.size, directory, path);
}

/* The bucket of the GNU hash table points to a chain that never ends. */
static void make_hash_chain(const char *directory, char path[4096])
{
    struct image image = load_image();
    uint32_t *table =
        (uint32_t *)(void *)(image.bytes + dynamic(&image, DT_GNU_HASH)->d_un.d_ptr);
    uint32_t *buckets = table + 4 + table[2] * (sizeof(ElfW(Addr)) / 4);
    buckets[0] = 0x7fffffff;
    write_image(&image, image.size, directory, path);
}

/* ---- tables that crash the dynamic loader, which does not check them ---- */

#define IMAGE_FAULT(function, change)                                                      \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        struct image image = load_image();                                                 \
        change;                                                                            \
        write_image(&image, image.size, directory, path);                                  \
    }
/* Data before the code has the same offset in the file and in memory. */
#define TABLE(type, tag) ((type *)(void *)(image.bytes + dynamic(&image, tag)->d_un.d_ptr))

IMAGE_FAULT(make_load_unreadable, segment(&image, PT_LOAD)->p_flags = PF_X)
IMAGE_FAULT(make_tls_outside, segment(&image, PT_GNU_EH_FRAME)->p_vaddr = 1 << 30;
            segment(&image, PT_GNU_EH_FRAME)->p_type = PT_TLS)
/* Valid: lld places memory that begins as zeros outside every segment, and mold begins
 * relro there. */
IMAGE_FAULT(make_tls_zeros, ElfW(Phdr) *tls = segment(&image, PT_GNU_EH_FRAME);
            tls->p_vaddr = 1 << 30; tls->p_filesz = 0; tls->p_memsz = 100;
            tls->p_align = 32; tls->p_type = PT_TLS)
IMAGE_FAULT(make_relro_early, segment(&image, PT_GNU_RELRO)->p_vaddr -= 4;
            segment(&image, PT_GNU_RELRO)->p_memsz += 4)
IMAGE_FAULT(make_tls_zero, ElfW(Phdr) *tls = segment(&image, PT_GNU_EH_FRAME);
            tls->p_vaddr = 0; tls->p_filesz = 16; tls->p_memsz = 32; tls->p_align = 8;
            tls->p_type = PT_TLS)
IMAGE_FAULT(make_tls_align, segment(&image, PT_GNU_EH_FRAME)->p_align = 0;
            segment(&image, PT_GNU_EH_FRAME)->p_type = PT_TLS)
IMAGE_FAULT(make_relro_outside, segment(&image, PT_GNU_RELRO)->p_vaddr = 0)
IMAGE_FAULT(make_relro_long, segment(&image, PT_GNU_RELRO)->p_memsz = 1 << 30)
IMAGE_FAULT(make_phdr, segment(&image, PT_GNU_EH_FRAME)->p_type = PT_PHDR)
IMAGE_FAULT(make_note_elsewhere, segment(&image, PT_NOTE)->p_vaddr += 1 << 30)
IMAGE_FAULT(make_property, segment(&image, PT_GNU_EH_FRAME)->p_vaddr = 1 << 30;
            segment(&image, PT_GNU_EH_FRAME)->p_type = PT_GNU_PROPERTY)
IMAGE_FAULT(make_soname, dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 1 << 30;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_SONAME)
IMAGE_FAULT(make_filter, dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 1 << 30;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_FILTER)
IMAGE_FAULT(make_filter_empty, dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 0;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_FILTER)
IMAGE_FAULT(make_auxiliary_empty, dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 0;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_AUXILIARY)
IMAGE_FAULT(make_load_writable, segment(&image, PT_LOAD)->p_flags |= PF_W)
IMAGE_FAULT(make_preinit, dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_PREINIT_ARRAY)
IMAGE_FAULT(make_init_zero, dynamic(&image, DT_INIT)->d_un.d_ptr = 0)
IMAGE_FAULT(make_init_array_size, dynamic(&image, DT_INIT_ARRAYSZ)->d_tag = DT_DEBUG)
IMAGE_FAULT(make_init_array_zero, dynamic(&image, DT_INIT_ARRAY)->d_un.d_ptr = 0)
IMAGE_FAULT(make_hash_shift, TABLE(uint32_t, DT_GNU_HASH)[3] = 99)
IMAGE_FAULT(make_symbol_name, TABLE(ElfW(Sym), DT_SYMTAB)[1].st_name = 1 << 30)
IMAGE_FAULT(make_symbol_resolver,
            TABLE(ElfW(Sym), DT_SYMTAB)[1].st_info = STT_GNU_IFUNC | STB_GLOBAL << 4;
            TABLE(ElfW(Sym), DT_SYMTAB)[1].st_shndx = 1)
IMAGE_FAULT(make_symbol_absolute, TABLE(ElfW(Sym), DT_SYMTAB)[1].st_shndx = SHN_ABS)
IMAGE_FAULT(make_symbol_value, TABLE(ElfW(Sym), DT_SYMTAB)[1].st_value = 64)
IMAGE_FAULT(make_version_number, TABLE(uint16_t, DT_VERSYM)[1] = 77)
IMAGE_FAULT(make_version_numbers, dynamic(&image, DT_VERSYM)->d_tag = DT_DEBUG)
IMAGE_FAULT(make_version_library, TABLE(ElfW(Verneed), DT_VERNEED)->vn_file++)
IMAGE_FAULT(make_version_next, TABLE(ElfW(Verneed), DT_VERNEED)->vn_next = 1 << 30)
IMAGE_FAULT(
    make_version_name,
    ((ElfW(Vernaux) *)(void *)(TABLE(ElfW(Verneed), DT_VERNEED) + 1))->vna_name = 1 << 30)
IMAGE_FAULT(make_version_own, dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 1 << 30;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_VERDEF)

/* Relocation types of the supported machines. */
#if defined(__x86_64__)
#define RELOCATIONS(type_x86, type_arm) type_x86
#elif defined(__aarch64__)
#define RELOCATIONS(type_x86, type_arm) type_arm
#endif
#if defined(RELOCATIONS)
#define RELATIVE RELOCATIONS(R_X86_64_RELATIVE, R_AARCH64_RELATIVE)
#define GLOB_DAT RELOCATIONS(R_X86_64_GLOB_DAT, R_AARCH64_GLOB_DAT)

/* Returns the first relocation of this type. */
static Elf64_Rela *relocation(const struct image *image, uint32_t type)
{
    Elf64_Rela *row =
        (Elf64_Rela *)(void *)(image->bytes + dynamic(image, DT_RELA)->d_un.d_ptr);
    for (uint64_t i = 0; i < dynamic(image, DT_RELASZ)->d_un.d_val / sizeof *row; i++)
        if (ELF64_R_TYPE(row[i].r_info) == type)
            return &row[i];
    fail_msg("hw_plain.so has no relocation of type %u", type);
    return NULL;
}

static Elf64_Sym *symbol_of(const struct image *image, const Elf64_Rela *row)
{
    return (Elf64_Sym *)(void *)(image->bytes + dynamic(image, DT_SYMTAB)->d_un.d_ptr) +
           ELF64_R_SYM(row->r_info);
}

/* Returns the relocation that sets the constructor's address. */
static Elf64_Rela *constructor(const struct image *image)
{
    Elf64_Rela *row = relocation(image, RELATIVE);
    while (row->r_offset != dynamic(image, DT_INIT_ARRAY)->d_un.d_ptr)
        row++;
    return row;
}

#define RELOCATION_FAULT(function, type, change)                                           \
    IMAGE_FAULT(function, Elf64_Rela *row = relocation(&image, type); change)
#define RETYPE(type_x86, type_arm)                                                         \
    row->r_info = ELF64_R_INFO(ELF64_R_SYM(row->r_info), RELOCATIONS(type_x86, type_arm))

RELOCATION_FAULT(make_rela_symbol, GLOB_DAT, row->r_info = ELF64_R_INFO(0x7fff, GLOB_DAT))
RELOCATION_FAULT(make_rela_no_symbol, GLOB_DAT, row->r_info = ELF64_R_INFO(0, GLOB_DAT))
RELOCATION_FAULT(make_rela_added, GLOB_DAT, row->r_addend = 64)
RELOCATION_FAULT(make_rela_type, GLOB_DAT, row->r_info |= 0xffff)
RELOCATION_FAULT(make_rela_copy, GLOB_DAT, RETYPE(R_X86_64_COPY, R_AARCH64_COPY))
RELOCATION_FAULT(make_rela_thread, GLOB_DAT, RETYPE(R_X86_64_TPOFF64, R_AARCH64_TLS_TPREL))
RELOCATION_FAULT(make_rela_no_thread, RELATIVE,
                 RETYPE(R_X86_64_TPOFF64, R_AARCH64_TLS_TPREL))
RELOCATION_FAULT(make_rela_size, GLOB_DAT, RETYPE(R_X86_64_SIZE64, R_AARCH64_COPY))
RELOCATION_FAULT(make_rela_named, GLOB_DAT, RETYPE(R_X86_64_RELATIVE, R_AARCH64_RELATIVE))
RELOCATION_FAULT(make_rela_none, GLOB_DAT, RETYPE(R_X86_64_NONE, R_AARCH64_NONE))
RELOCATION_FAULT(make_rela_local, GLOB_DAT, symbol_of(&image, row)->st_info &= 15)
RELOCATION_FAULT(make_rela_hidden, GLOB_DAT, symbol_of(&image, row)->st_other = STV_HIDDEN)
RELOCATION_FAULT(make_rela_far, GLOB_DAT, row->r_offset = UINT64_C(1) << 62)
RELOCATION_FAULT(make_rela_readonly, GLOB_DAT, row->r_offset = 64)
RELOCATION_FAULT(make_rela_dynamic, GLOB_DAT,
                 row->r_offset = segment(&image, PT_DYNAMIC)->p_vaddr + 8)
RELOCATION_FAULT(make_rela_resolver, RELATIVE,
                 RETYPE(R_X86_64_IRELATIVE, R_AARCH64_IRELATIVE);
                 row->r_addend = 64)
IMAGE_FAULT(make_rela_many, dynamic(&image, DT_RELACOUNT)->d_un.d_val += 1)
IMAGE_FAULT(make_rela_too_many, dynamic(&image, DT_RELACOUNT)->d_un.d_val += 1 << 20)
IMAGE_FAULT(make_rela_half, dynamic(&image, DT_RELASZ)->d_un.d_val -= 1)
IMAGE_FAULT(make_rela_entry, dynamic(&image, DT_RELAENT)->d_un.d_val = 8)
IMAGE_FAULT(make_rela_no_entry, dynamic(&image, DT_RELAENT)->d_tag = DT_DEBUG)
IMAGE_FAULT(make_rela_no_size, dynamic(&image, DT_RELASZ)->d_tag = DT_DEBUG)
IMAGE_FAULT(make_plt_kind, dynamic(&image, DT_PLTREL)->d_un.d_val = DT_REL)
IMAGE_FAULT(make_plt_none, dynamic(&image, DT_JMPREL)->d_tag = DT_DEBUG)
IMAGE_FAULT(make_rela_none_but_rel, dynamic(&image, DT_RELACOUNT)->d_un.d_ptr = 0;
            dynamic(&image, DT_RELACOUNT)->d_tag = DT_REL;
            dynamic(&image, DT_VERNEEDNUM)->d_un.d_val = 16;
            dynamic(&image, DT_VERNEEDNUM)->d_tag = DT_RELSZ;
            dynamic(&image, DT_PLTGOT)->d_un.d_val = 16;
            dynamic(&image, DT_PLTGOT)->d_tag = DT_RELENT)
/* A sparse segment of zeros, which takes no space on disk: a very long table of relocations
 * that do nothing. */
IMAGE_FAULT(make_rela_endless, ElfW(Phdr) *more = segment(&image, PT_GNU_EH_FRAME);
            more->p_type = PT_LOAD; more->p_flags = PF_R; more->p_align = 1 << 16;
            more->p_offset = more->p_vaddr = 1 << 24;
            more->p_filesz = more->p_memsz = (ElfW(Addr))24 << 24;
            dynamic(&image, DT_RELA)->d_un.d_ptr = more->p_vaddr;
            dynamic(&image, DT_RELASZ)->d_un.d_val = more->p_filesz;
            dynamic(&image, DT_RELACOUNT)->d_un.d_val = 0)
IMAGE_FAULT(make_relr, dynamic(&image, DT_RELACOUNT)->d_tag = 36 /* DT_RELR */)
IMAGE_FAULT(make_constructor, constructor(&image)->r_addend = 64)
IMAGE_FAULT(make_constructor_none, constructor(&image)->r_offset += 8)
IMAGE_FAULT(make_constructor_part, Elf64_Rela *row = constructor(&image);
            RETYPE(R_X86_64_PC32, R_AARCH64_COPY);
            dynamic(&image, DT_RELACOUNT)->d_un.d_val = 0)
IMAGE_FAULT(make_constructor_half, constructor(&image)->r_offset += 4)
#endif
#undef IMAGE_FAULT

#if defined(RELOCATIONS)
static void make_rela_sparse(const char *directory, char path[4096])
{
    make_rela_endless(directory, path);
    assert_int_equal(truncate(path, (off_t)25 << 24), 0);
}
#endif

/* hw_hashed.so has a hash table of the older format. Its chains are made endless, or lead
 * outside the table. */
static void make_table(const char *directory, char path[4096], uint32_t link)
{
    struct image image = load_hashed();
    uint32_t *table = TABLE(uint32_t, DT_HASH);
    for (uint32_t i = 0; i < table[1]; i++)
        table[2 + table[0] + i] = link;
    write_image(&image, image.size, directory, path);
}

static void make_table_endless(const char *directory, char path[4096])
{
    make_table(directory, path, 1);
}

static void make_table_outside(const char *directory, char path[4096])
{
    make_table(directory, path, 1 << 30);
}

/* The entry function has no section, so its address is absolute. */
static void make_entry_absolute(const char *directory, char path[4096])
{
    struct image image = load_image();
    const char *names = TABLE(char, DT_STRTAB);
    ElfW(Sym) *symbol = TABLE(ElfW(Sym), DT_SYMTAB);
    while (strcmp(names + symbol->st_name, "hw_plugin_entry") != 0)
        symbol++;
    symbol->st_shndx = SHN_ABS;
    write_image(&image, image.size, directory, path);
}

/* With the older hash table, an undefined thread-local variable is found as if it were
 * defined. */
static void make_symbol_thread(const char *directory, char path[4096])
{
    struct image image = load_hashed();
    TABLE(ElfW(Sym), DT_SYMTAB)[1].st_info = STT_TLS | STB_GLOBAL << 4;
    write_image(&image, image.size, directory, path);
}

/* A note whose length exceeds its segment. */
static void make_note_long(const char *directory, char path[4096])
{
    struct image image = load_image();
    ElfW(Phdr) *row = (ElfW(Phdr) *)(void *)(image.bytes + header(&image)->e_phoff);
    for (unsigned i = 0; i < header(&image)->e_phnum; i++)
        if (row[i].p_type == PT_NOTE)
            memset(image.bytes + row[i].p_offset, 0xff, 8);
    write_image(&image, image.size, directory, path);
}

static void make_stack_unsaid(const char *directory, char path[4096])
{
    struct image image = load_image();
    segment(&image, PT_GNU_STACK)->p_type = PT_NULL;
    write_image(&image, image.size, directory, path);
}

/* Truncates the file at this number of 64ths of its size. */
#define CUT_FAULT(function, at)                                                            \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        struct image image = load_image();                                                 \
        write_image(&image, at, directory, path);                                          \
    }
CUT_FAULT(make_cut_ident, 16)
CUT_FAULT(make_cut_header, sizeof(ElfW(Ehdr)) - 1)
CUT_FAULT(make_cut_segments, sizeof(ElfW(Ehdr)) + 1)
CUT_FAULT(make_cut_quarter, image.size / 4)
CUT_FAULT(make_cut_half, image.size / 2)
CUT_FAULT(make_cut_sections, image.size - 100)
CUT_FAULT(make_cut_last, image.size - 1)
#undef CUT_FAULT

/* This test program itself: position independent, like a shared object. */
static void make_program(const char *directory, char path[4096])
{
    size_t size;
    unsigned char *bytes = read_file("/proc/self/exe", &size);
    (void)directory;
    write_file(path, bytes, size);
    free(bytes);
}

/* ---- unusual kinds of files ---- */

static void put_plain(const char *directory, char path[4096])
{
    size_t size;
    unsigned char *bytes = read_built("plain", &size);
    snprintf(path, 4096, "%s/hw_%s.so", directory, alias);
    write_file(path, bytes, size);
    free(bytes);
}

static void make_a_directory(const char *directory, char path[4096])
{
    (void)directory;
    make_directory(path);
}

static void make_fifo(const char *directory, char path[4096])
{
    (void)directory;
    assert_int_equal(mkfifo(path, 0644), 0);
}

static void make_socket(const char *directory, char path[4096])
{
    struct sockaddr_un address = { .sun_family = AF_UNIX };
    (void)directory;
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&address, sizeof address), 0);
    close(fd);
}

static void make_link_dangling(const char *directory, char path[4096])
{
    (void)directory;
    assert_int_equal(symlink("nowhere", path), 0);
}

static void make_link_loop(const char *directory, char path[4096])
{
    char other[4200];
    snprintf(other, sizeof other, "%s/loop-%s", directory, alias);
    assert_int_equal(symlink(strrchr(other, '/') + 1, path), 0);
    assert_int_equal(symlink(path, other), 0);
}

static void make_link_device(const char *directory, char path[4096])
{
    (void)directory;
    assert_int_equal(symlink("/dev/zero", path), 0);
}

/* Creates a link, through a second link, to a plugin in a directory with the given mode. */
static void make_link(const char *directory, char path[4096], mode_t mode)
{
    char there[4000], plugin[4300], step[4300];
    snprintf(there, sizeof there, "%s/there-%s", directory, alias);
    make_directory(there);
    put_plain(there, path);
    snprintf(step, sizeof step, "%s/step-%s", directory, alias);
    snprintf(plugin, sizeof plugin, "%s/../there-%s/./hw_%s.so", there, alias, alias);
    snprintf(path, 4096, "%s/hw_%s.so", directory, alias);
    assert_int_equal(symlink(plugin, step), 0);
    assert_int_equal(symlink(strrchr(step, '/') + 1, path), 0);
    assert_int_equal(chmod(there, mode), 0);
}

static void make_link_good(const char *directory, char path[4096])
{
    make_link(directory, path, 0755);
}

static void make_link_outside(const char *directory, char path[4096])
{
    make_link(directory, path, 0777);
}

static void make_link_sticky(const char *directory, char path[4096])
{
    make_link(directory, path, 01777);
}

#define PLAIN_FAULT(function, change)                                                      \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        put_plain(directory, path);                                                        \
        assert_int_equal(change, 0);                                                       \
    }
PLAIN_FAULT(make_others_write, chmod(path, 0646))
PLAIN_FAULT(make_own_group_writes, chmod(path, 0664))
PLAIN_FAULT(make_group_writes, chown(path, (uid_t)-1, 12345) || chmod(path, 0664))
PLAIN_FAULT(make_owner, chown(path, 12345, (gid_t)-1))
#undef PLAIN_FAULT

/* An access control list in the system's binary form that lets user 12345 write. If the
 * file system does not support these lists, all users can write, which is rejected as well. */
static void make_access_list(const char *directory, char path[4096])
{
    static const struct {
        uint32_t version;
        struct {
            uint16_t tag, rights;
            uint32_t id;
        } rows[5];
    } list = { 2,
               { { 0x01, 6, UINT32_MAX }, /* the owner */
                 { 0x02, 6, 12345 },      /* a user */
                 { 0x04, 4, UINT32_MAX }, /* the group */
                 { 0x10, 6, UINT32_MAX }, /* the mask */
                 { 0x20, 4, UINT32_MAX } } /* all other users */ };
    put_plain(directory, path);
    if (setxattr(path, "system.posix_acl_access", &list, sizeof list, 0)) {
        print_message("# not applicable: no access control lists in %s\n", directory);
        assert_int_equal(chmod(path, 0646), 0);
    }
}

/* The search directory belongs to the fixture and must stay trusted. The fault is a link to
 * a plugin below a directory that another user owns. */
static void make_path_owner(const char *directory, char path[4096])
{
    make_link(directory, path, 0755);
    char there[4200];
    snprintf(there, sizeof there, "%s/there-%s", directory, alias);
    assert_int_equal(chown(there, 12345, (gid_t)-1), 0);
}

static void make_hard_link(const char *directory, char path[4096])
{
    char good[4200];
    snprintf(good, sizeof good, "%s/hw_good.so", directory);
    snprintf(path, 4096, "%s/hw_good2.so", directory);
    assert_int_equal(link(good, path), 0);
}

static void named(const char *directory, char path[4096], const char *name)
{
    size_t size;
    unsigned char *bytes = read_file(built("plain"), &size);
    snprintf(path, 4096, "%s/%s", directory, name);
    write_file(path, bytes, size);
    free(bytes);
}

#define NAME_FAULT(function, name)                                                         \
    static void function(const char *directory, char path[4096])                           \
    {                                                                                      \
        named(directory, path, name);                                                      \
    }
NAME_FAULT(make_name_none, "hw_.so")
NAME_FAULT(make_name_upper, "hw_Plain.so")
NAME_FAULT(make_name_control, "hw_pl\x1b[31main\n.so")
NAME_FAULT(make_name_alone, "plain.so")
NAME_FAULT(make_name_lib, "libhw_plain.so")
NAME_FAULT(make_name_dash, "hw-plain.so")
NAME_FAULT(make_name_version, "hw_plain.so.1")
NAME_FAULT(make_name_space, "hw_pl ain.so")
NAME_FAULT(make_name_quote, "hw_\"pl\\ain.so")
NAME_FAULT(make_name_dll, "hw_plain.dll")
NAME_FAULT(make_name_dylib, "hw_plain.dylib")
#undef NAME_FAULT

/* Bytes that are not valid UTF-8 appear in the report as U+FFFD. */
static void make_name_bytes(const char *directory, char path[4096])
{
    named(directory, path, "hw_\xff\xfe\xc0\x80.so");
    snprintf(path, 4096, "%s/hw_\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd.so",
             directory);
}

static void make_name_long(const char *directory, char path[4096])
{
    char name[256] = "hw_";
    memset(name + 3, 'a', 252);
    memcpy(name + 252, ".so", 4);
    named(directory, path, name);
}

const struct made made_faults[] = {
    { "file_empty", "malformed", make_empty, false },
    { "file_byte", "malformed", make_byte, false },
    { "file_magic", "malformed", make_magic, false },
    { "file_text", "not-an-object", make_text, false },
    { "file_script", "not-an-object", make_script, false },
    { "file_linker_script", "not-an-object", make_linker_script, false },
    { "file_archive", "not-an-object", make_archive, false },
    { "file_zeros", "not-an-object", make_zeros, false },
    { "file_pe", "wrong-machine", make_pe, false },
    { "file_macho", "wrong-machine", make_macho, false },
    { "file_macho_fat", "wrong-machine", make_macho_fat, false },
    { "elf_class", "wrong-machine", make_class, false },
    { "elf_class_none", "wrong-machine", make_class_none, false },
    { "elf_order", "wrong-machine", make_order, false },
    { "elf_machine", "wrong-machine", make_machine, false },
    { "elf_version", BY_PROBE, make_version, false },
    { "elf_exec", "not-an-object", make_exec, false },
    { "elf_core", "not-an-object", make_core, false },
    { "elf_rel", "not-an-object", make_rel, false },
    { "elf_type", "not-an-object", make_type, false },
    { "elf_program", "not-an-object", make_program, false },
    { "elf_phentsize", "malformed", make_phentsize, false },
    { "elf_phnum_none", "malformed", make_phnum_none, false },
    { "elf_phnum_many", "malformed", make_phnum_many, false },
    { "elf_phoff", "malformed", make_phoff, false },
    { "elf_phoff_wraps", "malformed", make_phoff_wraps, false },
    { "elf_shoff", "malformed", make_shoff, false },
    { "elf_shentsize", "malformed", make_shentsize, false },
    { "elf_sections_many", "malformed", make_sections_many, false },
    { "elf_load_offset", "malformed", make_load_offset, false },
    { "elf_load_long", "malformed", make_load_long, false },
    { "elf_load_wraps", "malformed", make_load_wraps, false },
    { "elf_load_small", "malformed", make_load_small, false },
    { "elf_load_align", "malformed", make_load_align, false },
    { "elf_load_huge", "malformed", make_load_huge, false },
    { "elf_load_overlaps", "malformed", make_load_overlaps, false },
    { "elf_load_none", "malformed", make_load_none, false },
    { "elf_dynamic_none", "malformed", make_dynamic_none, false },
    { "elf_dynamic_outside", "malformed", make_dynamic_outside, false },
    { "elf_dynamic_empty", "malformed", make_dynamic_empty, false },
    { "elf_dynamic_endless", "malformed", make_dynamic_endless, false },
    { "elf_strtab", "malformed", make_strtab, false },
    { "elf_strsz_none", "malformed", make_strsz_none, false },
    { "elf_strsz_huge", "malformed", make_strsz_huge, false },
    { "elf_strsz_cut", "malformed", make_strsz_cut, false },
    { "elf_symtab", "malformed", make_symtab, false },
    { "elf_syment", "malformed", make_syment, false },
    { "elf_hash", "malformed", make_hash, false },
    { "elf_hash_none", "malformed", make_hash_none, false },
    { "elf_hash_no_buckets", "malformed", make_hash_no_buckets, false },
    { "elf_hash_chain", "malformed", make_hash_chain, false },
    { "elf_needed", "malformed", make_needed, false },
    { "elf_rela", "malformed", make_rela, false },
    { "elf_init", BY_PROBE, make_init, false },
    { "elf_init_array", BY_PROBE, make_init_array, false },
    { "elf_load_unreadable", "malformed", make_load_unreadable, false },
    { "elf_tls_outside", "malformed", make_tls_outside, false },
    { "elf_tls_zeros", "", make_tls_zeros, false },
    { "elf_tls_zero", "malformed", make_tls_zero, false },
    { "elf_tls_align", "malformed", make_tls_align, false },
    { "elf_relro_outside", "malformed", make_relro_outside, false },
    { "elf_relro_early", "", make_relro_early, false },
    { "elf_relro_long", "malformed", make_relro_long, false },
    { "elf_phdr", "malformed", make_phdr, false },
    { "elf_note_elsewhere", "malformed", make_note_elsewhere, false },
    { "elf_property", "malformed", make_property, false },
    { "elf_soname", "malformed", make_soname, false },
    { "elf_filter", "malformed", make_filter, false },
    { "elf_filter_empty", "malformed", make_filter_empty, false },
    { "elf_auxiliary_empty", "malformed", make_auxiliary_empty, false },
    { "elf_load_writable", "malformed", make_load_writable, false },
    { "elf_preinit", BY_PROBE, make_preinit, false },
    { "elf_init_zero", BY_PROBE, make_init_zero, false },
    { "elf_init_array_size", BY_PROBE, make_init_array_size, false },
    { "elf_init_array_zero", BY_PROBE, make_init_array_zero, false },
    { "elf_hash_shift", "malformed", make_hash_shift, false },
    { "elf_table_endless", "malformed", make_table_endless, false },
    { "elf_table_outside", "malformed", make_table_outside, false },
    { "elf_symbol_name", "malformed", make_symbol_name, false },
    { "elf_symbol_resolver", "malformed", make_symbol_resolver, false },
    { "elf_symbol_absolute", "malformed", make_symbol_absolute, false },
    { "elf_symbol_value", "malformed", make_symbol_value, false },
    { "elf_symbol_thread", "malformed", make_symbol_thread, false },
    { "elf_entry_absolute", "no-entry", make_entry_absolute, false },
    { "elf_version_number", "malformed", make_version_number, false },
    { "elf_version_numbers", "malformed", make_version_numbers, false },
    { "elf_version_library", BY_PROBE, make_version_library, false },
    { "elf_version_next", "malformed", make_version_next, false },
    { "elf_version_name", "malformed", make_version_name, false },
    { "elf_version_own", "malformed", make_version_own, false },
#if defined(RELOCATIONS)
    { "elf_rela_symbol", "malformed", make_rela_symbol, false },
    { "elf_rela_no_symbol", BY_PROBE, make_rela_no_symbol, false },
    { "elf_rela_added", BY_PROBE, make_rela_added, false },
    { "elf_rela_type", BY_PROBE, make_rela_type, false },
    { "elf_rela_copy", BY_PROBE, make_rela_copy, false },
    { "elf_rela_thread", BY_PROBE, make_rela_thread, false },
    { "elf_rela_no_thread", BY_PROBE, make_rela_no_thread, false },
    { "elf_rela_size", BY_PROBE, make_rela_size, false },
    { "elf_rela_named", BY_PROBE, make_rela_named, false },
    { "elf_rela_none", BY_PROBE, make_rela_none, false },
    { "elf_rela_local", BY_PROBE, make_rela_local, false },
    { "elf_rela_hidden", BY_PROBE, make_rela_hidden, false },
    { "elf_rela_far", "malformed", make_rela_far, false },
    { "elf_rela_readonly", "malformed", make_rela_readonly, false },
    { "elf_rela_dynamic", BY_PROBE, make_rela_dynamic, false },
    { "elf_rela_resolver", BY_PROBE, make_rela_resolver, false },
    { "elf_rela_many", BY_PROBE, make_rela_many, false },
    { "elf_rela_too_many", BY_PROBE, make_rela_too_many, false },
    { "elf_rela_sparse", "malformed", make_rela_sparse, false },
    { "elf_rela_half", "malformed", make_rela_half, false },
    { "elf_rela_entry", BY_PROBE, make_rela_entry, false },
    { "elf_rela_no_entry", BY_PROBE, make_rela_no_entry, false },
    { "elf_rela_no_size", BY_PROBE, make_rela_no_size, false },
    { "elf_plt_kind", "malformed", make_plt_kind, false },
    { "elf_plt_none", BY_PROBE, make_plt_none, false },
    { "elf_rela_none_but_rel", BY_PROBE, make_rela_none_but_rel, false },
    { "elf_relr", BY_PROBE, make_relr, false },
    { "elf_constructor", BY_PROBE, make_constructor, false },
    { "elf_constructor_none", BY_PROBE, make_constructor_none, false },
    { "elf_constructor_part", BY_PROBE, make_constructor_part, false },
    { "elf_constructor_half", BY_PROBE, make_constructor_half, false },
#endif
    { "elf_verneed", "malformed", make_verneed, false },
    { "elf_note_long", "malformed", make_note_long, false },
    { "elf_note_outside", "malformed", make_note_outside, false },
    { "elf_stack", "executable-stack", make_stack, false },
#if defined(__x86_64__)
    { "elf_stack_unsaid", "executable-stack", make_stack_unsaid, false },
#endif
    { "elf_symbol", "no-entry", make_symbol, false },
    { "elf_library", "needs-library", make_library, false },
    { "elf_libc", "needs-libc", make_libc, false },
    { "cut_ident", "malformed", make_cut_ident, false },
    { "cut_header", "malformed", make_cut_header, false },
    { "cut_segments", "malformed", make_cut_segments, false },
    { "cut_quarter", "malformed", make_cut_quarter, false },
    { "cut_half", "malformed", make_cut_half, false },
    { "cut_sections", "malformed", make_cut_sections, false },
    { "cut_last", "malformed", make_cut_last, false },
    { "a_directory", "unreadable", make_a_directory, false },
    { "fifo", "unreadable", make_fifo, false },
    { "socket", "unreadable", make_socket, false },
    { "link_dangling", "missing", make_link_dangling, false },
    { "link_loop", "missing", make_link_loop, false },
    { "link_device", "unreadable", make_link_device, false },
    { "link_good", "", make_link_good, false },
    { "link_outside", "untrusted-path", make_link_outside, false },
    { "link_sticky", "", make_link_sticky, false },
    { "others_write", "untrusted-mode", make_others_write, false },
    { "own_group_writes", "", make_own_group_writes, true },
    { "group_writes", "untrusted-mode", make_group_writes, true },
    { "access_list", "untrusted-mode", make_access_list, false },
    { "owner", "untrusted-owner", make_owner, true },
    { "path_owner", "untrusted-path", make_path_owner, true },
    { "hard_link", "shadowed", make_hard_link, false },
    { "name_none", "bad-name", make_name_none, false },
    { "name_upper", "bad-name", make_name_upper, false },
    { "name_control", "bad-name", make_name_control, false },
    { "name_alone", "bad-name", make_name_alone, false },
    { "name_lib", "bad-name", make_name_lib, false },
    { "name_dash", "bad-name", make_name_dash, false },
    { "name_version", "bad-name", make_name_version, false },
    { "name_space", "bad-name", make_name_space, false },
    { "name_quote", "bad-name", make_name_quote, false },
    { "name_bytes", "bad-name", make_name_bytes, false },
    { "name_long", "bad-name", make_name_long, false },
    { "name_dll", "other-system", make_name_dll, false },
    { "name_dylib", "other-system", make_name_dylib, false },
    { NULL, NULL, NULL, false },
};
