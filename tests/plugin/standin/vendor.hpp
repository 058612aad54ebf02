/* SPDX-License-Identifier: MIT */
/* vendor.hpp - checks that a plugin declares a vendor's functions and constants as the vendor does,
 * with opaque handles for the vendor's types. Compiled, never run, and in C++, which can decompose
 * a function's type. */
#ifndef VENDOR_HPP
#define VENDOR_HPP

#include <cstddef>
#include <type_traits>

template <class Ours, class Theirs> struct same_call : std::false_type {
};

template <class Ours, class Theirs> constexpr bool same_value();

/* Compares the types behind two pointers. Our const forbids the vendor to write there. void is
 * opaque: a handle, a function, a struct or memory of any type, but no array of handles or
 * numbers. */
template <class Ours, class Theirs> constexpr bool same_pointee()
{
    if (std::is_const_v<Ours> && !std::is_const_v<Theirs>)
        return false;
    if constexpr (std::is_void_v<Ours>)
        return std::is_void_v<Theirs> || std::is_class_v<Theirs> ||
               std::is_function_v<Theirs>;
    else if constexpr (std::is_function_v<Ours>)
        return same_call<Ours, Theirs>::value;
    else
        return same_value<std::remove_cv_t<Ours>, std::remove_cv_t<Theirs>>();
}

template <class Ours, class Theirs> constexpr bool same_value()
{
    if constexpr (std::is_void_v<Ours> || std::is_void_v<Theirs>)
        return std::is_void_v<Ours> && std::is_void_v<Theirs>;
    else if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>)
        return same_pointee<std::remove_pointer_t<Ours>, std::remove_pointer_t<Theirs>>();
    else if constexpr (std::is_class_v<Ours> && std::is_class_v<Theirs>)
        return sizeof(Ours) == sizeof(Theirs);
    else if constexpr (std::is_integral_v<Ours> && std::is_integral_v<Theirs>)
        return sizeof(Ours) == sizeof(Theirs) &&
               std::is_signed_v<Ours> == std::is_signed_v<Theirs>;
    else if constexpr (std::is_integral_v<Ours> && std::is_enum_v<Theirs>)
        return sizeof(Ours) == sizeof(Theirs);
    else
        return std::is_same_v<Ours, Theirs>;
}

template <class Ours, class... OurArguments, class Theirs, class... TheirArguments>
struct same_call<Ours(OurArguments...), Theirs(TheirArguments...)> {
    static constexpr bool all()
    {
        if constexpr (sizeof...(OurArguments) == sizeof...(TheirArguments))
            return same_value<Ours, Theirs>() &&
                   (same_value<OurArguments, TheirArguments>() && ...);
        else
            return false;
    }
    static constexpr bool value = all();
};

/* Rows of a plugin's list, whose vendor's names are identifiers. */
#define SAME_CALL(result, name, arguments, theirs)                                         \
    static_assert(same_call<result arguments, decltype(theirs)>::value,                    \
                  #theirs " has another prototype");
#define SAME_NUMBER(name, value, theirs)                                                   \
    static_assert((long long)(value) == (long long)(theirs), #theirs " has another value");
/* Members of a struct of ours and of the vendor's. */
#define SAME_PLACE(ours, member, theirs, their_member)                                     \
    static_assert(offsetof(ours, member) == offsetof(theirs, their_member) &&              \
                      sizeof(((ours *)0)->member) == sizeof(((theirs *)0)->their_member),  \
                  #theirs "::" #their_member " lies elsewhere");

#endif
