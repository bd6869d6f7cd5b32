# frozen_string_literal: true

require_relative "helper"

# The signatures in `sig` are valid, and name every public method. The gem rbs comes with Ruby.
class TestSignatures < Test::Unit::TestCase
  SIGNATURES = File.expand_path("../sig", __dir__)
  # What Struct makes and the objects, which are frozen, do not offer.
  STRUCT = /=\z|\[\]\z/
  # What the classes call of each other.
  INTERNAL = %w[Minder::Children#await Minder::Children#claim Minder::Children#deadline
                Minder::Child#communicate].freeze

  def environment
    require "rbs"
    loader = RBS::EnvironmentLoader.new
    loader.add(library: "socket", version: nil)
    loader.add(path: Pathname(SIGNATURES))
    RBS::Environment.from_loader(loader).resolve_type_names
  rescue LoadError
    omit("the gem rbs is missing")
  end

  def classes(space)
    found = space.constants(false).map { |name| space.const_get(name) }.grep(Module)
    found.select { |mod| mod.name.start_with?("Minder::") }.flat_map { |mod| [mod, *classes(mod)] }
  end

  def test_every_public_method_has_a_signature
    found = environment
    builder = RBS::DefinitionBuilder.new(env: found)
    missing = []
    [Minder, *classes(Minder)].uniq.each do |mod|
      name = RBS::TypeName.new(name: mod.name.split("::").last.to_sym,
                               namespace: RBS::Namespace.parse("::" + mod.name.split("::")[0..-2].map { |n| "#{n}::" }.join))
      if !found.class_decls.key?(name)
        missing << mod.name unless mod.name.match?(/Launch|EventPoller/)
        next
      end
      own = builder.build_instance(name).methods
      singleton = builder.build_singleton(name).methods
      names = (mod.public_instance_methods(false) - own.keys).map { |method| "#{mod}##{method}" }
      names += (mod.singleton_methods(false) - singleton.keys).map { |method| "#{mod}.#{method}" }
      missing += mod < Struct ? names.grep_v(STRUCT) : names
    end
    assert_empty missing - INTERNAL
  end
end
